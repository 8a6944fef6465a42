// The exits of each vCPU by reason, handler event and number (reason CPUID, event cpuid, leaf 1):
// each exit is in exactly one place of this tree, with its length in cycles.
#pragma once

#include <cstdint>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/stat.h"
#include "correlate/exit_contents.h"
#include "trace/dialect.h"

namespace xenoscope::analysis {

// `Lengths` is what is counted of the lengths of one place: Stat or Totals.
template <typename Lengths>
class ExitParts {
 public:
  // Adds an exit. O(1); allocates at a part's first exit.
  void Add(const correlate::ExitContents& exit, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `budget` is the earlier parts'.
  void Prepend(ExitParts& earlier, EntryBudget& budget);
  // Adds a row for each reason.
  void Describe(bool nested, const trace::Dialect& dialect, MetricGroup& group) const;

 private:
  static constexpr uint32_t kMaxEntries = 1024;
  BoundedTable<Lengths> lengths_;
};

extern template class ExitParts<Stat>;
extern template class ExitParts<Totals>;

}  // namespace xenoscope::analysis
