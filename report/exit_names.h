// The names of VM exits, which are the same in every view.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "correlate/exit_contents.h"
#include "trace/names.h"

namespace xenoscope::report {

// Returns "VMEXIT_CPUID", "nested VMEXIT_CPUID", "exit 0x1ff".
inline std::string ExitName(trace::Vendor vendor, bool nested, uint32_t reason) {
  const std::string_view name = trace::ExitReasonName(vendor, reason);
  return fmt::format("{}{}", nested ? "nested " : "",
                     name.empty() ? fmt::format("exit {:#x}", reason) : std::string(name));
}

// Returns "cpuid leaf 0x1"; "-" if the exit's handler recorded nothing.
inline std::string SubreasonName(correlate::ExitKind kind, uint64_t number) {
  if (kind == correlate::ExitKind::kNoHandler) return "-";
  const std::string name = correlate::NumberName(kind, number);
  return fmt::format("{}{}{}", ToString(kind), name.empty() ? "" : " ", name);
}

}  // namespace xenoscope::report
