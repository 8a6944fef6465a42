// The names of what VM exits were about, which are the same in every view.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "correlate/exit_contents.h"
#include "trace/names.h"

namespace xenoscope::report {

// Returns "cpuid leaf 0x1"; "-" if the exit's handler recorded nothing.
inline std::string SubreasonName(correlate::ExitKind kind, uint64_t number) {
  if (kind == correlate::ExitKind::kNoHandler) return "-";
  const std::string name = correlate::NumberName(kind, number);
  return fmt::format("{}{}{}", ToString(kind), name.empty() ? "" : " ", name);
}

}  // namespace xenoscope::report
