// Places the samples that one drain of a vCPU's buffer found. They have one bracket, from the drain
// before to this one, and are in the order of time (docs/method.md, sections 2 and 3).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/placing/candidate_finder.h"
#include "correlate/placing/options.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

struct MatchedDrain;

// A sample that is an NMI exit of the trace is placed there, and ends the brackets of the samples
// before it and begins those of the samples after it. Other samples are placed at the exits whose
// entry their address names, on AMD, or by the lengths of the intervals in their bracket.
class DrainPlacer {
 public:
  // All but `options` outlive the placer.
  DrainPlacer(const PlacingOptions& options, RecentTimeline& timeline, CandidateFinder& finder,
              PlacingOutcome& outcome)
      : options_(options), timeline_(timeline), finder_(finder), outcome_(outcome) {}

  // Returns the samples of the vCPU, of which there is at least one, with their NMI exits.
  // O(samples + exits), beside what MatchNmiExits takes.
  [[nodiscard]] MatchedDrain Match(std::span<const recording::Sample> batch,
                                   const VcpuTrack& track) const;
  // Places the samples. O(samples + intervals).
  void Place(const MatchedDrain& drain);

 private:
  // What the samples of one event and mode share between two NMI exits. Samples of another event
  // say nothing of their order in time: events come in bursts.
  struct ModeCandidates {
    uint16_t event = 0;
    bool in_xen = false;
    std::optional<Candidates> intervals;
    size_t samples = 0;
    size_t before = 0;  // those before the one at hand
  };
  // Samples with the same address and mode can have been taken at the same exits.
  using ExitCandidates = absl::flat_hash_map<std::pair<Address, Mode>, Candidates>;
  // Returns what the sample shares with others.
  ModeCandidates& ModeOf(const recording::Sample& sample);
  // Begins the samples from the one with this index to the next that has an NMI exit.
  void BeginBetween(const MatchedDrain& drain, size_t index);
  // Counts the sample for how long transitions take, and for the part of lost time that is the
  // vCPU's; `mode` is that of what it interrupted, `in_lost` its weight in lost time.
  void NoteMode(const recording::Sample& sample, Mode mode, double in_lost, const VcpuTrack& track);
  // Places a sample that is no NMI exit; `clocked` is its time, if the sampling clock has it.
  void PlaceBetween(const recording::Sample& sample, const std::optional<ClockedTime>& clocked,
                    const VcpuTrack& track);
  // Places the sample in Xen at its time. Returns whether it can have been taken then.
  bool PlaceClocked(const recording::Sample& sample, const ClockedTime& time,
                    const VcpuTrack& track);
  // Places the guest-mode sample at the exits whose entry its address names, with `part` of the
  // others of its mode before it. Returns whether there are any.
  bool PlaceAtExits(const recording::Sample& sample, const VcpuTrack& track, double part);
  // Places the sample, before which there are `before` of its mode, by the lengths of intervals.
  void PlaceInIntervals(const recording::Sample& sample, const VcpuTrack& track,
                        ModeCandidates& mode, size_t before, double part);
  [[nodiscard]] static bool IsGuestSample(const recording::Sample& sample, const VcpuTrack& track) {
    return track.kind == VcpuKind::kHvm && sample.mode != Mode::kXen;
  }

  PlacingOptions options_;
  RecentTimeline& timeline_;
  CandidateFinder& finder_;
  PlacingOutcome& outcome_;
  // Of the samples between two NMI exits.
  TscRange between_;
  std::vector<ModeCandidates> modes_;  // one for each event and mode
  ExitCandidates at_exits_;
};

}  // namespace xenoscope::correlate
