// The number of a process's memory.
#pragma once

#include <compare>
#include <cstdint>

namespace xenoscope {

// The memory of one process for as long as one program runs in it. The reader of processes gives
// the numbers; 0: not known.
struct AddressSpaceId {
  uint32_t value = 0;
  constexpr auto operator<=>(const AddressSpaceId&) const = default;
};

}  // namespace xenoscope
