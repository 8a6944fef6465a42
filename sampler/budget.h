// Keeps a recorder that never ends below what it may cost. Each slice is measured; when it has cost
// too much the next one takes fewer samples, or traces fewer events, and more of them again when
// there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recording/info.h"
#include "sampler/recorder.h"
#include "trace/event_mask.h"

namespace xenoscope::sampler {

// What a recorder may cost. 0: no limit.
struct RecordingBudget {
  double cpu = 0;               // parts of one processor: 0.02 for 2 %
  double bytes_per_second = 0;  // of samples and trace, on the disk
};

// Parses "2%", "1MB/s", "500kB/s", or both kinds with a comma. Nothing if it is something else, or
// more than 100,000 % or 100,000 MB/s.
std::optional<RecordingBudget> ParseBudget(std::string_view text);

// What a slice has cost.
struct RecordingCost {
  double seconds = 0;      // its length
  double cpu_seconds = 0;  // processor time of the recorder and of all that it started
  uint64_t sample_bytes = 0;
  uint64_t trace_bytes = 0;
};

// What the next slice records of what was asked for.
struct RecordingPlan {
  double rate = 1;        // the part of the samples
  size_t trace_step = 0;  // how many steps the trace is reduced by

  bool operator==(const RecordingPlan&) const = default;
};

class BudgetController {
 public:
  // The lowest rate.
  static constexpr double kLeastRate = 1.0 / 64;

  // The trace can be reduced by this many steps.
  BudgetController(const RecordingBudget& budget, size_t trace_steps)
      : budget_(budget), trace_steps_(trace_steps) {}

  // Sets the plan of the next slice, by what the last one has cost with the plan before. Above the
  // budget, that takes less of what has written more bytes. Below half of it, the plan takes more
  // again, rate first; after an attempt that cost too much the next one waits for twice as many
  // slices, 64 at most. Returns whether the plan is another one. O(1).
  bool Take(const RecordingCost& cost);

  [[nodiscard]] const RecordingPlan& plan() const { return plan_; }
  // Whether the last slice was above the budget.
  [[nodiscard]] bool exceeded() const { return exceeded_; }

 private:
  void Lower(const RecordingCost& cost, double load);
  void Raise();

  RecordingBudget budget_;
  size_t trace_steps_;
  RecordingPlan plan_;
  bool exceeded_ = false;
  bool raised_ = false;                 // whether the last slice took more than the one before
  uint32_t calm_ = 0;                   // slices since the last one of more than half of the budget
  uint32_t patience_ = kLeastPatience;  // the calm slices before the plan takes more

  static constexpr uint32_t kLeastPatience = 2;
  static constexpr uint32_t kMostPatience = 64;
};

// A reduced trace.
struct TraceStep {
  std::string name;                      // as in record --trace-events; "none" for no trace
  std::optional<trace::EventMask> mask;  // nothing: no trace
};

// Returns the steps by which the trace of a recording can be reduced: by the presets that are
// cheaper than its mask, and at last, where it has samples, to none.
std::vector<TraceStep> TraceStepsOf(const RecordRequest& asked);

// Returns the request of a slice by the plan. `events` are those of a slice at the full rate: they
// are the ones whose rate is lowered where the request names none. Agents keep theirs.
RecordRequest Planned(const RecordRequest& asked, std::span<const TraceStep> steps,
                      std::span<const recording::EventInfo> events, const RecordingPlan& plan);

}  // namespace xenoscope::sampler
