// What a report by exits says of PV guests: the trace has when they entered Xen, and not when they
// left it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Returns a sentence for each of the selection's PV domains that entered Xen: how often it did
// what, and how much of its time in the row "running" that is at most. O(domains and kinds).
[[nodiscard]] std::vector<std::string> PvEntryNotes(const ProfileReport& report,
                                                    const ProfileSelection& selection);

// The same for programs, of all domains.
[[nodiscard]] nlohmann::ordered_json PvEntriesJson(const ProfileReport& report);

}  // namespace xenoscope::report
