// What usually causes VM exits of a kind, and what helps.
#pragma once

#include <string_view>

namespace xenoscope::findings {

// VM exits of one reason, as the summary's group `exits` names them.
struct ExitNames {
  std::string_view reason;  // "VMEXIT_CPUID" or "CPUID"
  std::string_view kind;    // "cpuid": ToString(ExitKind)
  std::string_view number;  // "leaf 0x1"; empty where all numbers of the kind are meant
};

// Returns one or two sentences; "" for exits that have no usual cause.
std::string_view UsualCause(const ExitNames& exit);

}  // namespace xenoscope::findings
