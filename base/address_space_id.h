// A process's memory, by number.
#pragma once

#include <compare>
#include <cstdint>

namespace xenoscope {

// The memory of one process for as long as one program runs in it, as whoever read of processes has
// numbered it; 0: not known.
struct AddressSpaceId {
  uint32_t value = 0;
  constexpr auto operator<=>(const AddressSpaceId&) const = default;
};

}  // namespace xenoscope
