#include "trace/exit_name.h"

#include <fmt/format.h>

#include <string_view>

namespace xenoscope::trace {

std::string ExitName(Vendor vendor, bool nested, uint32_t reason) {
  const std::string_view name = ExitReasonName(vendor, reason);
  return fmt::format("{}{}", nested ? "nested " : "",
                     name.empty() ? fmt::format("exit {:#x}", reason) : std::string(name));
}

}  // namespace xenoscope::trace
