#include "correlate/placing/virtual_interrupt.h"

#include <algorithm>

#include "correlate/placing/instant.h"
#include "correlate/placing/timed.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;

// Upper bound of the time from the beginning of a timeslice of dom0's vCPU to the sample of an
// interrupt that came before it: some 50 us under emulation.
constexpr Cycles kMaxLatency = Cycles{1} << 17;
// Upper bound of the time from an interrupt to the record that it has woken dom0's vCPU.
constexpr Cycles kWakeLatency = Cycles{1} << 15;

// Returns the vCPU's first exit in the bracket for which the condition holds; null: there is none.
template <typename Condition>
const ExitMark* FirstExit(const VcpuHistory& vcpu, TscRange bracket, Condition condition) {
  for (auto mark = vcpu.FirstExitSince(bracket.begin);
       mark != vcpu.exits.end() && mark->tsc <= bracket.end; ++mark) {
    if (condition(*mark)) return &*mark;
  }
  return nullptr;
}

}  // namespace

void VirtualInterruptPlacer::Place(const Sample& sample) {
  const Tsc taken = sample.when.begin + sample.when.Length() / 2;
  const std::optional<TimelineInterval> at = IntervalOn(*sample.pcpu, taken, timeline_);
  // Where dom0's vCPUs are not pinned, there is nothing better.
  if (!at || at->vcpu.domain != kDom0) return PlaceInstant(sample, timeline_, outcome_);
  const VcpuTrack* const sampler = timeline_.Find(at->vcpu);
  Tsc& previous = previous_[sample.pcpu->value];
  const Tsc entered = at->timeslice_begin;
  const VcpuHistory& waited = timeline_.HistoryOf(*sampler);
  const Cycles latency = waited.was_woken ? kWakeLatency : 0;
  const Tsc earliest{waited.runnable_since.value - std::min(waited.runnable_since.value, latency)};
  const TscRange bracket{std::max(previous, earliest), entered};
  // Xen keeps one sample, until Linux has taken it.
  const bool is_own = previous >= entered || taken - entered > kMaxLatency;
  previous = sample.when.end;
  if (is_own && sample.mode == Mode::kXen) {
    return AcceptTimed(sample, *sampler, sample.when, finder_, outcome_);
  }
  if (timeline_.UnobservedTimeIn(bracket).lost > 0) {
    return outcome_.Reject(sample, UnplacedReason::kTraceLost);
  }
  MeasureGuests(*sample.pcpu, bracket);
  const std::optional<Hit> hit = FindHit(sample, bracket);
  if (!hit) return outcome_.Reject(sample, UnplacedReason::kNotRunning);
  const Tsc middle = bracket.begin + bracket.Length() / 2;
  const Tsc since = hit->exit != nullptr ? hit->exit->tsc
                    : waited.was_woken   ? std::max(bracket.begin, waited.runnable_since)
                                         : middle;
  NoteHeld(*sample.pcpu, {since, entered});
  outcome_.checks().AddHeld(sampler->index, sampler->ref, taken - entered);
  if (hit->exit == nullptr || sample.mode != Mode::kXen) {
    return AcceptTimed(sample, *hit->track, hit->when, finder_, outcome_);
  }
  in_guest_ = sample;
  in_guest_.address = hit->exit->rip;
  in_guest_.mode = ModeOfGuestCode(hit->exit->rip);
  AcceptTimed(in_guest_, *hit->track, hit->when, finder_, outcome_);
}

void VirtualInterruptPlacer::MeasureGuests(PcpuId pcpu, TscRange bracket) {
  lengths_.clear();
  const PcpuHistory* const runs = timeline_.HistoryOf(pcpu);
  if (runs == nullptr || bracket.begin >= bracket.end) return;
  runs->ForEach(bracket, [&](const PcpuRun& run, TscRange part) {
    if (IsIdle(run.vcpu) || run.vcpu.domain == kDom0) return;
    const auto known = std::ranges::find(lengths_, run.vcpu, &std::pair<VcpuRef, Cycles>::first);
    if (known == lengths_.end()) {
      lengths_.emplace_back(run.vcpu, part.Length());
    } else {
      known->second += part.Length();
    }
  });
}

void VirtualInterruptPlacer::NoteHeld(PcpuId pcpu, TscRange held) {
  const PcpuHistory* const runs = timeline_.HistoryOf(pcpu);
  held = held.Intersect(options_.sampled);
  if (runs == nullptr || held.Empty()) return;
  runs->ForEach(held, [&](const PcpuRun& run, TscRange part) {
    if (IsIdle(run.vcpu)) return;
    outcome_.checks().AddHeld(run.vcpu_index, run.vcpu, part.Length());
  });
}

bool VirtualInterruptPlacer::MayBeExit(const Sample& sample) const {
  // The interrupt of an exit returns to svm_stgi_label, which is one byte behind the STGI.
  return sample.mode != Mode::kXen || (options_.stgi != 0 && sample.address == options_.stgi + 1);
}

std::optional<VirtualInterruptPlacer::Hit> VirtualInterruptPlacer::FindExit(
    const Sample& sample, TscRange bracket) const {
  std::optional<Hit> first;
  for (const auto& [vcpu, length] : lengths_) {
    const VcpuTrack* const track = timeline_.Find(vcpu);
    if (track->kind != VcpuKind::kHvm) continue;
    const ExitMark* const exit =
        FirstExit(timeline_.HistoryOf(*track), bracket, [&](const ExitMark& mark) {
          return sample.mode == Mode::kXen ? IsHostInterrupt(options_.vendor, mark.reason)
                                           : mark.rip == sample.address;
        });
    if (exit == nullptr || (first && first->exit->tsc <= exit->tsc)) continue;
    first = Hit{track, {Tsc{exit->tsc.value - 1}, exit->tsc}, exit};
  }
  return first;
}

std::optional<VirtualInterruptPlacer::Hit> VirtualInterruptPlacer::FindHit(const Sample& sample,
                                                                           TscRange bracket) const {
  if (MayBeExit(sample)) {
    if (const std::optional<Hit> exit = FindExit(sample, bracket)) return exit;
  }
  std::optional<Hit> hit;
  Cycles longest = 0;
  for (const auto& [vcpu, length] : lengths_) {
    const VcpuTrack* const track = timeline_.Find(vcpu);
    // An HVM guest's interrupt would have been an exit.
    if (sample.mode != Mode::kXen && track->kind == VcpuKind::kHvm) continue;
    if (length <= longest) continue;
    longest = length;
    hit = Hit{track, bracket};
  }
  return hit;
}

}  // namespace xenoscope::correlate
