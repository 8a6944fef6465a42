// Names of signals, for messages.
#pragma once

#include <string>

namespace xenoscope {

// Returns "SIGTERM", or "signal 99" where Linux has no name for the number.
[[nodiscard]] std::string SignalName(int number);

}  // namespace xenoscope
