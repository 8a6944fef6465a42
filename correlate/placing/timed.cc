#include "correlate/placing/timed.h"

namespace xenoscope::correlate {

void AcceptTimed(const recording::Sample& sample, const VcpuTrack& track, TscRange when,
                 CandidateFinder& finder, PlacingOutcome& outcome) {
  const Candidates found = finder.FindIntervals(track, sample.mode, when, 1);
  if (found.empty()) return outcome.Reject(sample, outcome.ReasonUnplaced(track, when));
  outcome.checks().AddBracketed(track.index, track.ref, found.when.Length());
  outcome.Accept({
      .sample = &sample,
      .vcpu = track.ref,
      .address = sample.address,
      .placement = Placement::kBracketed,
      .cluster = found.ClusterAt(0.5),
      .places = found.PlacesOf(0),
      .when = found.when,
  });
}

void PlaceTimed(const recording::Sample& sample, RecentTimeline& timeline, CandidateFinder& finder,
                PlacingOutcome& outcome) {
  const VcpuTrack* track = timeline.Find(sample.vcpu);
  if (track == nullptr) return outcome.RejectUnknownVcpu(sample);
  AcceptTimed(sample, *track, sample.when, finder, outcome);
}

}  // namespace xenoscope::correlate
