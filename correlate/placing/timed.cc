#include "correlate/placing/timed.h"

namespace xenoscope::correlate {

void PlaceTimed(const recording::Sample& sample, RecentTimeline& timeline, CandidateFinder& finder,
                PlacingOutcome& outcome) {
  const VcpuTrack* track = timeline.Find(sample.vcpu);
  if (track == nullptr) return outcome.RejectUnknownVcpu(sample);
  const Candidates found = finder.FindIntervals(*track, sample.mode, sample.when, 1);
  if (found.empty()) {
    return outcome.Reject(sample, outcome.ReasonUnplaced(*track, sample.when));
  }
  timeline.HistoryOf(*track).transitions.AddSample(sample.mode);
  outcome.checks().AddBracketed(track->index, sample.vcpu, found.when.Length());
  outcome.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = sample.address,
      .placement = Placement::kBracketed,
      .cluster = found.ClusterAt(0.5),
      .places = found.PlacesOf(0),
      .when = found.when,
  });
}

}  // namespace xenoscope::correlate
