// Each vCPU's exits by reason, handler event and number (reason CPUID, event cpuid, leaf 1): every
// exit is in exactly one place of this tree, with the length of its arc.
#pragma once

#include <cstdint>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/stat.h"
#include "correlate/exit_contents.h"
#include "trace/dialect.h"

namespace xenoscope::analysis {

class ExitParts {
 public:
  // O(1); allocates at a part's first exit.
  void Add(const correlate::ExitContents& exit, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `room` is the earlier parts'.
  void Prepend(ExitParts& earlier, EntryBudget& budget);
  // Adds a row per reason.
  void Describe(bool nested, const trace::Dialect& dialect, MetricGroup& group) const;

 private:
  static constexpr uint32_t kMaxEntries = 1024;
  BoundedTable<Stat> stats_;
};

}  // namespace xenoscope::analysis
