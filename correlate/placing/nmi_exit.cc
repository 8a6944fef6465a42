#include "correlate/placing/nmi_exit.h"

#include <algorithm>
#include <cstddef>

#include "correlate/placing/candidates.h"

namespace xenoscope::correlate {

std::vector<const ExitMark*> FindNmiExits(std::span<const recording::Sample> batch,
                                          LoggedRip logged_rip, VcpuHistory& vcpu) {
  std::vector<const ExitMark*> nmi_exits(batch.size(), nullptr);
  std::vector<size_t> samples;
  std::vector<GuestSample> guest;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].mode == Mode::kXen) continue;
    samples.push_back(i);
    guest.push_back({batch[i].address, batch[i].mode});
  }
  const TscRange bracket = batch.front().when;
  std::vector<const ExitMark*> marks;
  std::vector<ExitMark> exits;
  const Tsc from = std::max(bracket.begin, vcpu.nmi_matched_until);
  for (auto mark = vcpu.FirstExitSince(from); mark != vcpu.exits.end(); ++mark) {
    if (mark->tsc >= bracket.end) break;
    if (!mark->nmi) continue;
    marks.push_back(&*mark);
    exits.push_back(*mark);
  }
  for (const NmiMatch& pair : MatchNmiExits(guest, exits, logged_rip)) {
    nmi_exits[samples[pair.sample]] = marks[pair.exit];
    vcpu.nmi_matched_until = marks[pair.exit]->tsc + 1;
  }
  return nmi_exits;
}

void PlaceAtNmiExit(const recording::Sample& sample, const ExitMark& exit, const VcpuTrack& track,
                    PlacingOutcome& outcome) {
  outcome.checks().AddExact(track.index, sample.vcpu, exit.tsc - exit.timeslice_begin);
  const Context guest = GuestBefore(exit);
  const Place place{guest, exit.pcpu, 1};
  outcome.Accept({
      .sample = &sample,
      .vcpu = sample.vcpu,
      .address = exit.rip,
      .placement = Placement::kNmiExit,
      .cluster = ClusterOf(exit.timeslice_id, guest.kind, sample.when),
      .places = {&place, 1},
      .when = {exit.tsc, exit.tsc + 1},
  });
}

}  // namespace xenoscope::correlate
