// What of a trace could not be read.
#pragma once

#include <cstdint>

#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::trace {

struct UnreadCounts {
  uint64_t damages = 0;        // places with bytes that cannot be a record
  uint64_t damaged_bytes = 0;  // bytes that were passed over there
  uint64_t malformed = 0;      // records with a number of words, or of a vCPU, that no Xen has

  // Counts an item of the ordered stream, if it is one of these. O(1).
  void Count(const Item& item) {
    if (item.kind == ItemKind::kMalformed) ++malformed;
    if (item.kind == ItemKind::kDamaged) Count(item.damage);
  }
  // Counts the damage between windows, which a stream that does not count records does not give.
  // O(damages).
  void CountBetween(const WindowIndex& windows) {
    for (const Damage& damage : windows.damages) Count(damage);
  }
  // Adds the counts of the part of the trace that follows.
  void Append(const UnreadCounts& later) {
    damages += later.damages;
    damaged_bytes += later.damaged_bytes;
    malformed += later.malformed;
  }

 private:
  void Count(const Damage& damage) {
    ++damages;
    damaged_bytes += damage.bytes;
  }
};

}  // namespace xenoscope::trace
