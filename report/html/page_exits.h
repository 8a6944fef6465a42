// What the VM exits of the page were about: ports, MSRs, CPUID leaves, hypercalls.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/document.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Adds "parts" to the page's exits (PageTimeline::ExitsJson): [subreason, count, cycles] for each
// subreason in the trace, most cycles first; those beyond kMostExitParts are one. The document has
// the summary's exits. An exit whose reason the summary does not have gets none. O(rows log rows).
inline constexpr size_t kMostExitParts = 100;
void AddExitParts(const analysis::Document& document, const ProfileReport& report,
                  nlohmann::ordered_json& exits);

}  // namespace xenoscope::report
