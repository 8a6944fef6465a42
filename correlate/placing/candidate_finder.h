// Finds the places where a sample can have been: the intervals of the timeline that agree with its
// mode (docs/method.md, section 3), or the exits whose entry its address names (section 2.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/placing/candidates.h"
#include "correlate/placing/rank_weights.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// The time of a sample in Xen by the sampling clock (method.md, section 3.4).
struct ClockedTime {
  TscRange when;
  Cycles handler = 0;  // no record came for so long after the sample: Xen handled its NMI
};

// Whether the interval is of a switch to the vCPU, whose samples are those of another vCPU
// (method.md, section 4.5).
[[nodiscard]] inline bool IsSwitchTo(const TimelineInterval& interval, VcpuRef vcpu) {
  return interval.context.kind == ContextKind::kSwitch && interval.vcpu == vcpu;
}

// Whether a record of the pCPU ended the interval before the next one of the vCPU.
[[nodiscard]] inline bool IsRecordBetween(const TimelineInterval& interval,
                                          const TimelineInterval& next) {
  return interval.range.end != next.range.begin || interval.context.kind != next.context.kind ||
         interval.context.reason != next.context.reason;
}

class CandidateFinder {
 public:
  // `timeline` outlives the finder.
  CandidateFinder(RecentTimeline& timeline, LoggedRip logged_rip)
      : timeline_(timeline), logged_rip_(logged_rip) {}

  // Returns where each of `samples` samples of the vCPU and the mode can have been within the
  // bracket, weighed by length and, where there are several, by rank. O(intervals).
  [[nodiscard]] Candidates FindIntervals(const VcpuTrack& track, Mode mode, TscRange bracket,
                                         size_t samples);
  // Returns where a sample in Xen can have been that was taken at the time. O(intervals).
  [[nodiscard]] Candidates FindClocked(const VcpuTrack& track, const ClockedTime& time);
  // Returns the exits at which the guest-mode sample can have been taken, if there are any.
  // O(exits).
  [[nodiscard]] Candidates FindExits(const VcpuTrack& track, const recording::Sample& sample,
                                     TscRange bracket);
  // Internal: some places did not sum to a weight of 1.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  // Adds the part of an interval that lies in the bracket, for samples of `vcpu`. Returns whether
  // they can have been there.
  bool AddInterval(const TimelineInterval& interval, TscRange part, double part_of_lost,
                   VcpuRef vcpu, Candidates& found);
  // Adds the part of an interval, before the record that ends it, in which a sample of the time can
  // have been taken.
  void AddClocked(const TimelineInterval& interval, bool ends, const ClockedTime& time,
                  VcpuRef vcpu, Candidates& found);
  // Adds the transitions of the stay in the guest, which can have samples in Xen. Returns whether
  // they take any time.
  bool AddTransition(const TimelineInterval& interval, TscRange part, Candidates& found);
  // Replaces the places, which have their lengths, by those of each rank.
  void WeighByRank(size_t samples, Candidates& found);
  // Ends the places of the next rank: lets their weights sum to 1, and numbers the list.
  void EndRank(Candidates& found);

  RecentTimeline& timeline_;
  LoggedRip logged_rip_;
  uint64_t lists_ = 0;  // of places, so far
  absl::Status status_;
  // What a search needs, kept for its memory.
  std::vector<CandidateInterval> intervals_;  // FindIntervals: in the order of time
  RankWeights rank_weights_;
  std::vector<Place> unranked_;  // WeighByRank: the places of all ranks
};

}  // namespace xenoscope::correlate
