// Places samples that dom0's Linux took for all domains by Xen's vPMU (docs/method.md, section
// 1.1). Xen notes what the counter's interrupt hit, and sends dom0 a virtual interrupt. Linux takes
// the sample in that: when dom0's vCPU runs again.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/placing/candidate_finder.h"
#include "correlate/placing/options.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// The longest time that virtual interrupts are followed back: that of dom0's waits for a pCPU.
inline constexpr Cycles kLongestVirtualInterrupt = Cycles{1} << 28;

class VirtualInterruptPlacer {
 public:
  // All outlive this.
  VirtualInterruptPlacer(const PlacingOptions& options, RecentTimeline& timeline,
                         CandidateFinder& finder, PlacingOutcome& outcome)
      : options_(options), timeline_(timeline), finder_(finder), outcome_(outcome) {}

  // Places the sample of an unknown domain on a known pCPU. Its bracket is the time at which Linux
  // took it. O(intervals between the interrupt and that).
  void Place(const recording::Sample& sample);

 private:
  // A vCPU that the interrupt can have hit, and the range of time in which it can have.
  struct Hit {
    const VcpuTrack* track = nullptr;
    TscRange when;
    const ExitMark* exit = nullptr;  // the VM exit that the interrupt was; null: it was none
  };

  // Measures how long each vCPU of a guest ran on the pCPU within the bracket.
  void MeasureGuests(PcpuId pcpu, TscRange bracket);

  // Counts the time in which Xen held a sample, and so could take no other, for its vCPUs.
  void NoteHeld(PcpuId pcpu, TscRange held);

  // Whether the interrupt may have been a VM exit: it hit a guest. On AMD Xen takes that interrupt
  // at its next STGI, and notes this as what was interrupted.
  [[nodiscard]] bool MayBeExit(const recording::Sample& sample) const;

  // Returns the first exit of the measured vCPUs in the bracket that may be the sample's interrupt.
  [[nodiscard]] std::optional<Hit> FindExit(const recording::Sample& sample,
                                            TscRange bracket) const;

  // Returns which of the measured vCPUs the interrupt hit between the beginning of the bracket and
  // its end, at which dom0's vCPU began to run.
  [[nodiscard]] std::optional<Hit> FindHit(const recording::Sample& sample, TscRange bracket) const;

  PlacingOptions options_;
  RecentTimeline& timeline_;
  CandidateFinder& finder_;
  PlacingOutcome& outcome_;
  absl::flat_hash_map<uint32_t, Tsc> previous_;      // by pCPU: when Linux took the last sample
  std::vector<std::pair<VcpuRef, Cycles>> lengths_;  // by MeasureGuests
  recording::Sample in_guest_;                       // the sample that was placed at an exit last
};

}  // namespace xenoscope::correlate
