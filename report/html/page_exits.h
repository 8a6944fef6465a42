// What the VM exits of the page were about: ports, MSRs, CPUID leaves, hypercalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/document.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

struct ExitSum {
  uint64_t count = 0;
  uint64_t cycles = 0;
};
using ExitSums = std::map<std::string, ExitSum>;  // by subreason

// Returns [subreason, count, cycles] for each subreason, most cycles first; those beyond
// kMostExitParts are one. O(n log n).
inline constexpr size_t kMostExitParts = 100;
nlohmann::ordered_json ExitPartsJson(const ExitSums& sums);

// Adds "parts" to the page's exits (PageExitList::ToJson): ExitPartsJson of the subreasons in the
// trace. The document has the summary's exits. An exit whose reason the summary does not have keeps
// what it has. O(rows log rows).
void AddExitParts(const analysis::Document& document, const ProfileReport& report,
                  nlohmann::ordered_json& exits);

}  // namespace xenoscope::report
