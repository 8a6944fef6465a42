#include "correlate/placing/instant.h"

#include <optional>

#include "correlate/placing/candidates.h"

namespace xenoscope::correlate {
namespace {

// Returns the interval that holds the instant: `completed`, or one that `open` is in.
std::optional<TimelineInterval> IntervalAt(Tsc at, const TimelineInterval* completed,
                                           const VcpuTrack* open, const RecentTimeline& timeline) {
  if (completed != nullptr) return *completed;
  std::optional<TimelineInterval> found;
  if (open == nullptr) return found;
  timeline.ForEachOpen(*open, [&](const TimelineInterval& last) {
    if (last.range.Contains(at)) found = last;
  });
  return found;
}

void AcceptInstant(const recording::Sample& sample, Tsc at, const TimelineInterval& interval,
                   RecentTimeline& timeline, PlacingOutcome& outcome) {
  if (const VcpuTrack* track = timeline.Find(interval.vcpu)) {
    if (HasInstants(interval.context.kind)) {
      outcome.checks().AddExact(track->index, interval.vcpu, at - interval.timeslice_begin);
    } else {
      outcome.checks().AddOther(track->index, interval.vcpu);
    }
  }
  Place place = PlaceIn(interval);
  if (sample.mode == Mode::kXen && interval.context.kind == ContextKind::kGuest) {
    place.context = TransitionOf(interval.context);
  }
  outcome.Accept({
      .sample = &sample,
      .vcpu = interval.vcpu,
      .address = sample.address,
      .placement = Placement::kInstant,
      .cluster = ClusterOf(interval.timeslice_id, interval.context.kind, sample.when),
      .places = {&place, 1},
      .when = sample.when,
  });
}

}  // namespace

std::optional<TimelineInterval> IntervalOn(PcpuId pcpu, Tsc at, const RecentTimeline& timeline) {
  return IntervalAt(at, timeline.IntervalOn(pcpu, at), timeline.Current(pcpu), timeline);
}

void PlaceInstant(const recording::Sample& sample, RecentTimeline& timeline,
                  PlacingOutcome& outcome) {
  const Tsc at = sample.when.begin + sample.when.Length() / 2;
  const bool domain_unknown = sample.vcpu.domain >= kFirstReservedDomain;
  std::optional<TimelineInterval> found;
  if (!domain_unknown) {
    const VcpuTrack* track = timeline.Find(sample.vcpu);
    if (track == nullptr) return outcome.Reject(sample, UnplacedReason::kUnknownVcpu);
    found = IntervalAt(at, timeline.HistoryOf(*track).intervals.At(at), track, timeline);
    if (found && found->vcpu != sample.vcpu) found.reset();  // a switch from it: another runs
  } else if (sample.pcpu) {
    found = IntervalOn(*sample.pcpu, at, timeline);
  }
  if (!found) {
    if (timeline.OutsideTrace(sample.when)) {
      return outcome.Reject(sample, UnplacedReason::kOutsideTrace);
    }
    return outcome.Reject(
        sample, domain_unknown ? UnplacedReason::kUnknownVcpu : UnplacedReason::kNotRunning);
  }
  if (found->context.kind == ContextKind::kLost &&
      timeline.UnobservedTimeIn({at, at + 1}).lost == 0) {
    return outcome.Reject(sample, UnplacedReason::kTraceLost);
  }
  AcceptInstant(sample, at, *found, timeline, outcome);
}

}  // namespace xenoscope::correlate
