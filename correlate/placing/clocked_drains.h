// Drains of HVM guests whose samples are matched with NMI exits, held until exits after them have
// been matched, too: between two NMI exits a clock that is even predicts when samples were taken
// (docs/method.md, section 3.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/nmi_matching.h"
#include "correlate/placing/candidate_finder.h"
#include "correlate/placing/recent_timeline.h"
#include "correlate/placing/sampling_clock.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// The samples of one drain of a vCPU.
struct MatchedDrain {
  const VcpuTrack* track = nullptr;
  std::vector<recording::Sample> samples;
  std::vector<std::optional<ExitMark>> nmi_exits;   // by sample: its NMI exit
  std::vector<std::optional<ClockedTime>> clocked;  // by sample in Xen
};

class ClockedDrains {
 public:
  // How long drains are held once a clock is even, in cycles. Samples between NMI exits that are
  // further apart keep their brackets.
  static constexpr Cycles kHeld = Cycles{1} << 27;
  // Where more samples come in that time, they are not held for so long.
  static constexpr size_t kMaxHeld = size_t{1} << 16;

  // `timeline` outlives this, and has all that is as old as kHeld.
  explicit ClockedDrains(RecentTimeline& timeline) : timeline_(timeline) {}

  // Takes the next drain, which has samples. O(samples + intervals), amortised.
  void Take(MatchedDrain drain);
  // Returns the oldest drain if all that the clock can say of it is known; `at_end`: even if not.
  // Valid until Pop; null if there is none.
  [[nodiscard]] const MatchedDrain* Next(bool at_end) const;
  // Forgets that drain.
  void Pop();
  // The begin of the oldest bracket that is held.
  [[nodiscard]] std::optional<Tsc> begin() const;

 private:
  using Slot = std::pair<MatchedDrain*, size_t>;  // a sample
  // The samples of one event and vCPU since its last NMI exit.
  struct Run {
    std::optional<ExitMark> begin;
    std::vector<Slot> samples;  // that are held
    bool all_held = true;
    bool all_in_xen = true;
    size_t count = 0;  // samples, held or not
    // The stretch before, if it had a whole number of periods.
    Cycles length_before = 0;
    size_t periods_before = 0;
  };

  // Ends the run at the vCPU's next NMI exit.
  void End(Run& run, const ExitMark& end, const VcpuTrack& track, SamplingClock& clock);
  // Finds when the vCPU was to be sampled in the run of so many periods: instants_. Returns whether
  // they are the samples'.
  bool FindInstants(const Run& run, TscRange between, size_t periods, const VcpuTrack& track,
                    const SamplingClock& clock);
  // Learns the offset from a sample in Xen whose record would have been at `at`.
  void LearnOffset(Tsc at, const VcpuTrack& track, NmiOffsetEstimator& offsets);

  RecentTimeline& timeline_;
  std::deque<MatchedDrain> held_;
  size_t samples_ = 0;  // that are held
  Tsc latest_;          // the end of the latest bracket
  absl::flat_hash_map<std::pair<VcpuRef, uint16_t>, Run> runs_;
  absl::flat_hash_map<uint16_t, SamplingClock> clocks_;  // by event
  std::vector<Tsc> instants_;  // of the records that samples of the run at hand would have had
};

}  // namespace xenoscope::correlate
