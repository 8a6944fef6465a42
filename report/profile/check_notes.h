// The results of the cross-checks of samples against the trace (docs/method.md, section 6): notes
// for people, and all figures for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Returns one note for each kind of disagreement, however many domains have it; empty if samples
// and trace agree.
std::vector<std::string> CheckNotes(const ProfileReport& report);

// Returns one note on samples without a function, with the most frequent reasons; empty if all
// samples have a function.
std::vector<std::string> UnresolvedNotes(const ProfileReport& report);

nlohmann::ordered_json DomainChecksJson(const ProfileReport& report);
nlohmann::ordered_json PlacingChecksJson(const ProfileReport& report);

}  // namespace xenoscope::report
