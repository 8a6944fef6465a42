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
  const TscRange bracket{std::max(previous, timeline_.HistoryOf(*sampler).runnable_since), entered};
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
  if (PlaceAtInterruptExit(sample, bracket)) return;
  const std::optional<Hit> hit = FindHit(sample, bracket);
  if (!hit) return outcome_.Reject(sample, UnplacedReason::kNotRunning);
  AcceptTimed(sample, *hit->track, hit->when, finder_, outcome_);
}

void VirtualInterruptPlacer::MeasureGuests(PcpuId pcpu, TscRange bracket) {
  lengths_.clear();
  const TimelineHistory* const intervals = timeline_.IntervalsOf(pcpu);
  if (intervals == nullptr || bracket.begin >= bracket.end) return;
  intervals->ForEach(bracket, [&](const TimelineInterval& interval, TscRange part) {
    if (IsIdle(interval.vcpu) || interval.vcpu.domain == kDom0) return;
    const auto known =
        std::ranges::find(lengths_, interval.vcpu, &std::pair<VcpuRef, Cycles>::first);
    if (known == lengths_.end()) {
      lengths_.emplace_back(interval.vcpu, part.Length());
    } else {
      known->second += part.Length();
    }
  });
}

bool VirtualInterruptPlacer::PlaceAtInterruptExit(const Sample& sample, TscRange bracket) {
  // The interrupt returns to svm_stgi_label, which is one byte behind the STGI.
  if (options_.stgi == 0 || sample.address != options_.stgi + 1) return false;
  const ExitMark* first = nullptr;
  const VcpuTrack* track = nullptr;
  for (const auto& [vcpu, length] : lengths_) {
    const VcpuTrack* const ran = timeline_.Find(vcpu);
    if (ran->kind != VcpuKind::kHvm) continue;
    const ExitMark* const exit = FirstExit(
        timeline_.HistoryOf(*ran), bracket,
        [&](const ExitMark& mark) { return IsHostInterrupt(options_.vendor, mark.reason); });
    if (exit == nullptr || (first != nullptr && first->tsc <= exit->tsc)) continue;
    first = exit;
    track = ran;
  }
  if (first == nullptr) return false;
  in_guest_ = sample;
  in_guest_.address = first->rip;
  in_guest_.mode = ModeOfGuestCode(first->rip);
  AcceptTimed(in_guest_, *track, {Tsc{first->tsc.value - 1}, first->tsc}, finder_, outcome_);
  return true;
}

std::optional<VirtualInterruptPlacer::Hit> VirtualInterruptPlacer::FindHit(const Sample& sample,
                                                                           TscRange bracket) {
  std::optional<Hit> hit;
  Cycles longest = 0;
  for (const auto& [vcpu, length] : lengths_) {
    const VcpuTrack* const track = timeline_.Find(vcpu);
    if (sample.mode != Mode::kXen && track->kind == VcpuKind::kHvm) {
      const ExitMark* const exit =
          FirstExit(timeline_.HistoryOf(*track), bracket,
                    [&](const ExitMark& mark) { return mark.rip == sample.address; });
      if (exit != nullptr) return Hit{track, {Tsc{exit->tsc.value - 1}, exit->tsc}};
      continue;  // the interrupt would have been an exit
    }
    if (length <= longest) continue;
    longest = length;
    hit = Hit{track, bracket};
  }
  return hit;
}

}  // namespace xenoscope::correlate
