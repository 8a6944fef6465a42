// Names come from hosts and their guests: what is stored is bounded and printable.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xenoscope::store {

// The longest name, in bytes.
inline constexpr size_t kMaxName = 1024;

// Returns the name with each byte that is not printable ASCII as "\x1b". Where it would be longer
// than kMaxName, its end becomes "...#" and a checksum of the whole name, so that different names
// stay different. O(length).
[[nodiscard]] std::string BoundedName(std::string_view name);

}  // namespace xenoscope::store
