// What the cross-checks of samples against trace say (docs/method.md, section 6): a plain sentence
// where it matters, and all their figures for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Nothing where samples and trace agree.
std::vector<std::string> CheckNotes(const ProfileReport& report);

// Why samples have no function, a sentence a reason.
std::vector<std::string> UnresolvedNotes(const ProfileReport& report);

nlohmann::ordered_json DomainChecksJson(const ProfileReport& report);
nlohmann::ordered_json PlacingChecksJson(const ProfileReport& report);

}  // namespace xenoscope::report
