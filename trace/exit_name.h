// The names of VM exits, which are the same in every view and in stores.
#pragma once

#include <cstdint>
#include <string>

#include "trace/names.h"

namespace xenoscope::trace {

// Returns "VMEXIT_CPUID", "nested VMEXIT_CPUID", "exit 0x1ff".
[[nodiscard]] std::string ExitName(Vendor vendor, bool nested, uint32_t reason);

}  // namespace xenoscope::trace
