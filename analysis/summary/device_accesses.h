// The accesses of each vCPU to emulated devices, by I/O port and by MMIO address: their number, the
// length of the exits in which they were made, and how long the vCPU waited for its device model in
// them. An exit with two accesses counts, with its whole length, for both; its waits count for the
// first.
#pragma once

#include <cstdint>

#include "analysis/bounded_table.h"
#include "analysis/document.h"
#include "analysis/stat.h"
#include "correlate/exit_contents.h"

namespace xenoscope::analysis {

// The waits for the device model.
struct DeviceWaits {
  uint64_t count = 0;
  Cycles cycles = 0;

  void Add(Cycles length) {
    ++count;
    cycles += length;
  }
  // Takes back an Add.
  void Remove(Cycles length) {
    --count;
    cycles -= length;
  }
  DeviceWaits& operator+=(const DeviceWaits& more) {
    count += more.count;
    cycles += more.cycles;
    return *this;
  }
};

class DeviceAccesses {
 public:
  // Adds the accesses of an exit. O(accesses); allocates at the first access to an address.
  void Add(const correlate::ExitContents& exit, const DeviceWaits& waits, EntryBudget& budget);
  // Adds what was counted before; see BoundedTable::Prepend. `budget` is the earlier accesses'.
  void Prepend(DeviceAccesses& earlier, EntryBudget& budget);
  void Describe(Section& out) const;
  // Returns the groups that Describe adds.
  static std::vector<GroupInfo> Groups();

 private:
  static constexpr uint32_t kMaxEntries = 1024;
  struct Total {
    Stat exits;
    DeviceWaits waits;
  };
  Total& At(const correlate::DeviceAccess& access, EntryBudget& budget);

  BoundedTable<Total> totals_;
  uint64_t not_kept_ = 0;  // accesses beyond ExitContents::kMaxAccesses in one exit
};

}  // namespace xenoscope::analysis
