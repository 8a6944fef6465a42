// The names of VM exits, which are the same in every view.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "trace/names.h"

namespace xenoscope::report {

// Returns "VMEXIT_CPUID", "nested VMEXIT_CPUID", "exit 0x1ff".
inline std::string ExitName(trace::Vendor vendor, bool nested, uint32_t reason) {
  const std::string_view name = trace::ExitReasonName(vendor, reason);
  return fmt::format("{}{}", nested ? "nested " : "",
                     name.empty() ? fmt::format("exit {:#x}", reason) : std::string(name));
}

}  // namespace xenoscope::report
