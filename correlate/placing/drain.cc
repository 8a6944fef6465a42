#include "correlate/placing/drain.h"

#include <algorithm>
#include <cstdint>

#include "correlate/placing/clocked_drains.h"
#include "correlate/placing/nmi_exit.h"
#include "correlate/ranks.h"

namespace xenoscope::correlate {

MatchedDrain DrainPlacer::Match(std::span<const recording::Sample> batch,
                                const VcpuTrack& track) const {
  MatchedDrain drain{&track, {batch.begin(), batch.end()}, {}, {}};
  drain.nmi_exits.resize(batch.size());
  drain.clocked.resize(batch.size());
  const std::vector<const ExitMark*> exits =
      FindNmiExits(batch, options_.logged_rip, timeline_.HistoryOf(track));
  for (size_t i = 0; i < batch.size(); ++i) {
    if (exits[i] != nullptr) drain.nmi_exits[i] = *exits[i];
  }
  return drain;
}

void DrainPlacer::Place(const MatchedDrain& drain) {
  const TscRange bracket = drain.samples.front().when;
  const VcpuTrack& track = *drain.track;
  between_ = {bracket.begin, bracket.begin};
  for (size_t i = 0; i < drain.samples.size(); ++i) {
    const recording::Sample& sample = drain.samples[i];
    if (const std::optional<ExitMark>& exit = drain.nmi_exits[i]) {
      NoteMode(sample, sample.mode, 0, track);
      PlaceAtNmiExit(sample, *exit, track, outcome_);
      between_ = {exit->tsc, exit->tsc};
      continue;
    }
    if (between_.Empty()) BeginBetween(drain, i);
    PlaceBetween(sample, drain.clocked[i], track);
  }
}

void DrainPlacer::BeginBetween(const MatchedDrain& drain, size_t index) {
  const auto first = drain.nmi_exits.begin() + static_cast<std::ptrdiff_t>(index);
  const auto next =
      std::find_if(first, drain.nmi_exits.end(), [](const auto& exit) { return exit.has_value(); });
  between_.end = next == drain.nmi_exits.end() ? drain.samples.front().when.end : (*next)->tsc;
  modes_.clear();
  at_exits_.clear();
  const auto samples = static_cast<size_t>(next - first);
  for (size_t i = index; i < index + samples; ++i) ++ModeOf(drain.samples[i]).samples;
}

DrainPlacer::ModeCandidates& DrainPlacer::ModeOf(const recording::Sample& sample) {
  const bool in_xen = sample.mode == Mode::kXen;
  for (ModeCandidates& mode : modes_) {
    if (mode.event == sample.event && mode.in_xen == in_xen) return mode;
  }
  ModeCandidates& mode = modes_.emplace_back();
  mode.event = sample.event;
  mode.in_xen = in_xen;
  return mode;
}

void DrainPlacer::NoteMode(const recording::Sample& sample, Mode mode, double in_lost,
                           const VcpuTrack& track) {
  if (!options_.beside[sample.event]) timeline_.AddSample(track, mode, in_lost);
}

void DrainPlacer::PlaceBetween(const recording::Sample& sample,
                               const std::optional<ClockedTime>& clocked, const VcpuTrack& track) {
  ModeCandidates& mode = ModeOf(sample);
  const size_t before = mode.before++;
  if (clocked && PlaceClocked(sample, *clocked, track)) return;
  const double part = (static_cast<double>(before) + 0.5) / static_cast<double>(mode.samples);
  if (options_.vendor == trace::Vendor::kSvm && IsGuestSample(sample, track) &&
      PlaceAtExits(sample, track, part)) {
    return;
  }
  PlaceInIntervals(sample, track, mode, before, part);
}

bool DrainPlacer::PlaceClocked(const recording::Sample& sample, const ClockedTime& time,
                               const VcpuTrack& track) {
  const Candidates found = finder_.FindClocked(track, time);
  if (found.empty()) return false;
  NoteMode(sample, sample.mode, 0, track);
  outcome_.checks().AddClocked(track.index, sample.vcpu, time.when.Length());
  outcome_.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = sample.address,
      .placement = Placement::kClocked,
      .cluster = found.ClusterAt(0.5),
      .places = found.PlacesOf(0),
      .when = found.when,
      .list = found.first_list,
  });
  return true;
}

bool DrainPlacer::PlaceAtExits(const recording::Sample& sample, const VcpuTrack& track,
                               double part) {
  const auto [at, is_new] = at_exits_.try_emplace({sample.address, sample.mode});
  Candidates& exits = at->second;
  if (is_new) {
    exits = finder_.FindExits(track, sample, between_);
    if (exits.empty() && between_ != sample.when) {
      exits = finder_.FindExits(track, sample, sample.when);
    }
  }
  if (exits.empty()) return false;
  outcome_.checks().AddOther(track.index, sample.vcpu);
  outcome_.checks().AddMissed(track.index, sample.vcpu);
  NoteMode(sample, Mode::kXen, 0, track);
  outcome_.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = options_.stgi,
      .placement = Placement::kAtExit,
      .cluster = exits.ClusterAt(part),
      .places = exits.PlacesOf(0),
      .when = exits.when,
      .list = exits.first_list,
  });
  return true;
}

void DrainPlacer::PlaceInIntervals(const recording::Sample& sample, const VcpuTrack& track,
                                   ModeCandidates& mode, size_t before, double part) {
  if (!mode.intervals) {
    mode.intervals = finder_.FindIntervals(track, sample.mode, between_, mode.samples);
    if (mode.intervals->empty()) {
      mode.intervals = finder_.FindIntervals(track, sample.mode, sample.when, 1);
    }
  }
  const Candidates& found = *mode.intervals;
  NoteMode(sample, sample.mode, found.in_lost, track);
  if (found.empty()) {
    return outcome_.Reject(sample, outcome_.ReasonUnplaced(track, sample.when));
  }
  outcome_.checks().AddBracketed(track.index, sample.vcpu, found.when.Length());
  if (IsGuestSample(sample, track)) {
    outcome_.checks().AddMissed(track.index, sample.vcpu);
    if (options_.logged_rip == LoggedRip::kOfLastEntry) outcome_.NoteStale();
  }
  const size_t rank = found.ranks == 1 ? 0 : RankOf(before, mode.samples);
  outcome_.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = sample.address,
      .placement = Placement::kBracketed,
      .cluster = found.ClusterAt(part),
      .places = found.PlacesOf(rank),
      .when = found.when,
      .list = found.first_list + rank,
  });
}

}  // namespace xenoscope::correlate
