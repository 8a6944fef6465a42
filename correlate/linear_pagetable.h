// Finds which page-table entry a guest's write changed, if the guest maps its page tables into
// themselves (Windows does, Linux does not): the address alone says the entry's level and what it
// maps.
//
// The self-map is one slot of the top table that points to the table itself: slot 768 of 1024 with
// two levels, the last of the four directories under PAE, slot 0x1ed of 512 with four levels.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mode.h"

namespace xenoscope::correlate {

struct LinearEntry {
  uint32_t level = 0;  // 1: the entry maps a page
  Address maps = 0;    // the first address that the entry maps
};

// Returns the entry at `va` of a guest with `levels` paging levels, if it lies in the self-map.
[[nodiscard]] constexpr std::optional<LinearEntry> FindLinearEntry(uint32_t levels, Address va) {
  if (levels == 2) {
    constexpr Address kTables = 0xc0000000;     // 4 MiB of entries of 4 bytes
    constexpr Address kDirectory = 0xc0300000;  // its own page among them
    if (va >> 22 != kTables >> 22) return std::nullopt;
    if (va >> 12 == kDirectory >> 12) return LinearEntry{2, (va & 0xfff) >> 2 << 22};
    return LinearEntry{1, (va - kTables) >> 2 << 12};
  }
  if (levels == 3) {
    constexpr Address kTables = 0xc0000000;       // 8 MiB of entries of 8 bytes
    constexpr Address kDirectories = 0xc0600000;  // four pages
    if (va >> 23 != kTables >> 23) return std::nullopt;
    if (va >> 14 == kDirectories >> 14) return LinearEntry{2, (va - kDirectories) >> 3 << 21};
    return LinearEntry{1, (va - kTables) >> 3 << 12};
  }
  constexpr uint64_t kSlot = 0x1ed;
  const auto index = [va](uint32_t level) { return va >> (12 + 9 * (level - 1)) & 0x1ff; };
  if (levels != 4 || index(4) != kSlot) return std::nullopt;
  uint32_t level = 1;
  while (level < 4 && index(4 - level) == kSlot) ++level;
  // The indices that are left over select the entry; each turn through the slot used up one.
  Address maps = va >> 3 << 3;
  maps <<= 9 * level;
  maps = maps & 0x0000ffffffffffff & ~((uint64_t{1} << (12 + 9 * (level - 1))) - 1);
  if ((maps >> 47 & 1) != 0) maps |= 0xffff000000000000;
  return LinearEntry{level, maps};
}

}  // namespace xenoscope::correlate
