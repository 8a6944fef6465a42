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
  void Add(const correlate::ExitContents& exit, Room& room);
  // Adds what was counted before; see BoundedTable::Prepend. `room` is the earlier accesses'.
  void Prepend(DeviceAccesses& earlier, Room& room);
  void Describe(Section& out) const;

 private:
  static constexpr uint32_t kMost = 1024;
  Stat& Of(const correlate::DeviceAccess& access, Room& room);

  BoundedTable<Stat> stats_;
  uint64_t not_kept_ = 0;  // beyond ExitContents::kMostAccesses in one exit
};

}  // namespace xenoscope::analysis
