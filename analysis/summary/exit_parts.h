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
  void Add(const correlate::ExitContents& exit, Room& room);
  // Adds what was counted before; see BoundedTable::Prepend. `room` is the earlier parts'.
  void Prepend(ExitParts& earlier, Room& room);
  // Adds a row per reason.
  void Describe(bool nested, const trace::Dialect& dialect, Group& group) const;

 private:
  static constexpr uint32_t kMost = 1024;
  BoundedTable<Stat> stats_;
};

}  // namespace xenoscope::analysis
