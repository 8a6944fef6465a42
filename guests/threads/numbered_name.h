// The text of a thread, or of a process, in reports: names alone are not unique.
#pragma once

#include <cstdint>
#include <string>

namespace xenoscope::guests {

// Returns "web (7)"; without a number (0) the name alone.
[[nodiscard]] std::string NumberedName(const std::string& name, uint32_t number);

}  // namespace xenoscope::guests
