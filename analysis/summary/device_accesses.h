// Each vCPU's accesses to emulated devices, by I/O port and by MMIO address: how many, and how long
// the exits took in which they were made. An exit with two accesses counts, with all its time, for
// both.
#pragma once

#include <cstdint>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/stat.h"
#include "correlate/exit_contents.h"

namespace xenoscope::analysis {

class DeviceAccesses {
 public:
  // O(accesses); allocates at the first access to an address.
  void Add(const correlate::ExitContents& exit, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `room` is the earlier accesses'.
  void Prepend(DeviceAccesses& earlier, EntryBudget& budget);
  void Describe(Section& out) const;

 private:
  static constexpr uint32_t kMaxEntries = 1024;
  Stat& At(const correlate::DeviceAccess& access, EntryBudget& budget);

  BoundedTable<Stat> stats_;
  uint64_t not_kept_ = 0;  // beyond ExitContents::kMaxAccesses in one exit
};

}  // namespace xenoscope::analysis
