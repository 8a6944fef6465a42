// Which vCPUs a stretch of a trace names, found before a pass takes its items.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "trace/cursor.h"

namespace xenoscope::trace {

// The vCPUs that a stretch of a trace names in changes of runstates.
struct NamedVcpus {
  struct Name {
    PcpuId by;  // the pCPU in whose trace the record is
    VcpuRef vcpu;
  };
  std::vector<Name> names;  // each at least once
  uint64_t bytes = 0;       // of the stretch
};

// Finds which vCPUs the items up to the time `through` name that are next for the cursors, which
// are of one stream and stay where they are. Returns nothing if these are too many, or if some
// items may concern other vCPUs, or the order of all items: losses, damage, unknown records, ends
// of domains, begins and ends of pCPUs. O(records).
[[nodiscard]] std::optional<NamedVcpus> FindNamedVcpus(std::span<const Cursor* const> cursors,
                                                       Tsc through);

}  // namespace xenoscope::trace
