// What became of samples: hands each to the observer, placed or not, and counts it.
#pragma once

#include <array>
#include <cstdint>

#include "base/tsc.h"
#include "correlate/cross_checks.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// Each sample is in one count of `placed` or `unplaced`.
struct SampleCounts {
  uint64_t samples = 0;
  std::array<uint64_t, kPlacements> placed{};
  std::array<uint64_t, kUnplacedReasons> unplaced{};
  uint64_t repaired = 0;  // addresses that the exit's record corrected
  uint64_t stale = 0;     // addresses known to be stale that nothing could correct

  [[nodiscard]] uint64_t Attributed() const;
  [[nodiscard]] uint64_t Unplaced() const;
};

class PlacingOutcome {
 public:
  // All outlive the outcome.
  PlacingOutcome(RecentTimeline& timeline, PlacingObserver& observer, CrossChecks& checks)
      : timeline_(timeline), observer_(observer), checks_(checks) {}

  // Counts samples that will be accepted or rejected.
  void Begin(size_t samples) { counts_.samples += samples; }
  // Counts a sample whose address is stale.
  void NoteStale() { ++counts_.stale; }
  // The sample has its places.
  void Accept(const PlacedSample& placed);
  // The sample has a place in lost time: it was there, in a vCPU's bracket, and nothing more is
  // known.
  void AcceptLost(const recording::Sample& sample, PcpuId pcpu, uint64_t timeslice_id);
  // The sample has none.
  void Reject(const recording::Sample& sample, UnplacedReason why);
  // The sample has none, as the trace has not named its vCPU.
  void RejectUnknownVcpu(const recording::Sample& sample);

  // Returns why samples of the vCPU find no place within the bracket. O(intervals).
  [[nodiscard]] UnplacedReason ReasonUnplaced(const VcpuTrack& track, TscRange bracket) const;
  [[nodiscard]] CrossChecks& checks() { return checks_; }
  [[nodiscard]] const SampleCounts& counts() const { return counts_; }

 private:
  RecentTimeline& timeline_;
  PlacingObserver& observer_;
  CrossChecks& checks_;
  SampleCounts counts_;
};

}  // namespace xenoscope::correlate
