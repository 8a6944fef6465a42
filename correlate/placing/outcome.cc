#include "correlate/placing/outcome.h"

#include <numeric>
#include <optional>

#include "correlate/placing/candidates.h"

namespace xenoscope::correlate {

uint64_t SampleCounts::Attributed() const {
  return std::accumulate(placed.begin(), placed.end(), uint64_t{0});
}

uint64_t SampleCounts::Unplaced() const {
  return std::accumulate(unplaced.begin(), unplaced.end(), uint64_t{0});
}

void PlacingOutcome::Accept(const PlacedSample& placed) {
  ++counts_.placed[static_cast<size_t>(placed.placement)];
  const bool is_repaired =
      placed.placement == Placement::kNmiExit && placed.address != placed.sample->address;
  counts_.repaired += static_cast<uint64_t>(is_repaired);
  timeline_.NotePlaced(placed);
  observer_.OnPlaced(placed);
}

void PlacingOutcome::AcceptLost(const recording::Sample& sample, PcpuId pcpu,
                                uint64_t timeslice_id) {
  const Place unseen{{ContextKind::kLost}, pcpu, 1};
  Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = sample.address,
      .placement = Placement::kBracketed,
      .cluster = ClusterOf(timeslice_id, ContextKind::kLost, sample.when),
      .places = {&unseen, 1},
      .when = sample.when,
  });
}

void PlacingOutcome::Reject(const recording::Sample& sample, UnplacedReason why) {
  ++counts_.unplaced[static_cast<size_t>(why)];
  if (why == UnplacedReason::kNotRunning || why == UnplacedReason::kModeDisagrees) {
    if (const VcpuTrack* track = timeline_.Find(sample.vcpu)) {
      checks_.AddImpossible(track->index, track->ref);
    }
  }
  observer_.OnUnplaced(sample, why);
}

void PlacingOutcome::RejectUnknownVcpu(const recording::Sample& sample) {
  Reject(sample, timeline_.OutsideTrace(sample.when) ? UnplacedReason::kOutsideTrace
                                                     : UnplacedReason::kUnknownVcpu);
}

UnplacedReason PlacingOutcome::ReasonUnplaced(const VcpuTrack& track, TscRange bracket) const {
  if (timeline_.OutsideTrace(bracket)) return UnplacedReason::kOutsideTrace;
  bool lost = false;
  bool ran = false;
  const auto look = [&](const TimelineInterval& interval, TscRange) {
    (interval.context.kind == ContextKind::kLost ? lost : ran) = true;
  };
  timeline_.HistoryOf(track).intervals.ForEach(bracket, look);
  const std::optional<TimelineInterval> open = timeline_.OpenInterval(track);
  if (open && !open->range.Intersect(bracket).Empty()) look(*open, bracket);
  if (lost) return UnplacedReason::kTraceLost;
  return ran ? UnplacedReason::kModeDisagrees : UnplacedReason::kNotRunning;
}

}  // namespace xenoscope::correlate
