#include "correlate/placing/stopped.h"

#include <optional>

#include "correlate/nmi_matching.h"
#include "correlate/placing/candidates.h"

namespace xenoscope::correlate {
namespace {

// The stop was not seen: the sample was in lost time, or it has no place.
void PlaceUnseenStop(const recording::Sample& sample, const VcpuTrack& track,
                     RecentTimeline& timeline, PlacingOutcome& outcome) {
  const UnplacedReason why = outcome.ReasonUnplaced(track, sample.when);
  if (why != UnplacedReason::kTraceLost || timeline.UnobservedTimeIn(sample.when).lost == 0) {
    return outcome.Reject(
        sample, why == UnplacedReason::kModeDisagrees ? UnplacedReason::kNotRunning : why);
  }
  outcome.checks().AddOther(track.index, sample.vcpu);
  outcome.AcceptLost(sample, track.pcpu, track.timeslice_id);
}

// Returns the guest's interval before the exit that the stop's interrupt caused, else `last`.
const TimelineInterval* IntervalBeforeStop(const TimelineInterval* last, trace::Vendor vendor,
                                           const VcpuHistory& vcpu) {
  if (last->context.kind != ContextKind::kExit || !IsHostInterrupt(vendor, last->context.reason)) {
    return last;
  }
  const TimelineInterval* before = vcpu.intervals.At(Tsc{last->range.begin.value - 1});
  return before != nullptr && before->context.kind == ContextKind::kGuest ? before : last;
}

}  // namespace

void PlaceStopped(const recording::Sample& sample, trace::Vendor vendor, RecentTimeline& timeline,
                  PlacingOutcome& outcome) {
  const VcpuTrack* track = timeline.Find(sample.vcpu);
  if (track == nullptr) return outcome.RejectUnknownVcpu(sample);
  const VcpuHistory& vcpu = timeline.HistoryOf(*track);
  const std::optional<Tsc> stop = vcpu.StopWithin(*track, sample.when);
  const TimelineInterval* last = stop ? vcpu.intervals.At(Tsc{stop->value - 1}) : nullptr;
  if (last == nullptr || last->context.kind == ContextKind::kLost) {
    return PlaceUnseenStop(sample, *track, timeline, outcome);
  }
  const TimelineInterval& interval = *IntervalBeforeStop(last, vendor, vcpu);
  outcome.checks().AddOther(track->index, sample.vcpu);
  const Place place = PlaceIn(interval);
  outcome.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = sample.address,
      .placement = Placement::kStopped,
      .cluster = ClusterOf(interval.timeslice_id, interval.context.kind, sample.when),
      .places = {&place, 1},
      .when = {*stop, *stop + 1},
  });
}

}  // namespace xenoscope::correlate
