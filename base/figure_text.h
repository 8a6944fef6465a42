// Figures as people read them: the same in tables and in sentences.
#pragma once

#include <cstdint>
#include <string>

namespace xenoscope {

// Returns "12,345".
[[nodiscard]] std::string CountText(uint64_t count);
// Returns "1.234 s", "1.234 ms", "1.234 us", "12 ns".
[[nodiscard]] std::string SecondsText(double seconds);
// Returns a part of a whole: "48.93%" for 0.4893.
[[nodiscard]] std::string ShareText(double share);

}  // namespace xenoscope
