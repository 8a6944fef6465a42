// The accesses of each vCPU to emulated devices, by I/O port and by MMIO address: their number, and
// the length of the exits in which they were made. An exit with two accesses counts, with its whole
// length, for both.
#pragma once

#include <cstdint>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/stat.h"
#include "correlate/exit_contents.h"

namespace xenoscope::analysis {

class DeviceAccesses {
 public:
  // Adds the accesses of an exit. O(accesses); allocates at the first access to an address.
  void Add(const correlate::ExitContents& exit, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `budget` is the earlier accesses'.
  void Prepend(DeviceAccesses& earlier, EntryBudget& budget);
  void Describe(Section& out) const;

 private:
  static constexpr uint32_t kMaxEntries = 1024;
  Stat& At(const correlate::DeviceAccess& access, EntryBudget& budget);

  BoundedTable<Stat> stats_;
  uint64_t not_kept_ = 0;  // accesses beyond ExitContents::kMaxAccesses in one exit
};

}  // namespace xenoscope::analysis
