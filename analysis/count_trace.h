// One pass of analyses over a trace, on several threads, each with analyses of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/trace_division.h"
#include "analysis/trace_totals.h"
#include "base/ids.h"
#include "trace/cursor.h"
#include "trace/trace_file.h"
#include "trace/volume.h"

namespace xenoscope::analysis {

// A function that makes the analyses of one thread.
using MakeAnalyses = std::function<std::vector<std::unique_ptr<Analysis>>()>;

struct CountingOptions {
  const MakeAnalyses& make;
  trace::RecordOrder order;  // RecordPipeline::Require
  size_t divide_over;        // the vCPUs among which budgets are divided; 0: all share them
  uint64_t window_bytes;     // of correlate::PcpuGroups
};

// What the calling thread does besides counting. It is given the totals of the first partition.
struct BesidesCounting {
  std::function<void()> first;  // when the other threads have begun
  // After 1, 2, 4, 8, ... steps of several.
  std::function<void(const TraceTotals&, const trace::Volume&)> after_some_steps;
};

struct CountedTrace {
  TraceTotals totals;
  trace::Volume volume;
  std::set<VcpuRef> vcpus;
  // The analyses of all of the trace; `kept` owns them.
  const std::vector<std::unique_ptr<Analysis>>* analyses = nullptr;
  std::shared_ptr<const void> kept;
  bool refused = false;           // a budget was exceeded (EntryBudget::refused)
  bool cut = false;               // EntryBudget::cut
  bool depends_on_order = false;  // the figures depend on the order of different pCPUs' records
  size_t met = 0;                 // vCPUs that any thread has met
  uint32_t partitions_repeated = 0;
};

// Counts all partitions of the division, each on a thread of its own and the first one on this
// thread, and merges them. A thread that is done makes another partition of what a thread has not
// begun. Time is linear in the records.
[[nodiscard]] CountedTrace CountTrace(const trace::TraceFile& file, const CountingOptions& options,
                                      const TraceDivision& division,
                                      const BesidesCounting& besides);

}  // namespace xenoscope::analysis
