// A report as one HTML file that needs nothing else: the page of report/html/web with its data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/profile.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The page with its data (report/html/web/src/data.ts). Errors: Unimplemented where the command was
// built without the page.
absl::StatusOr<std::string> ToPage(const nlohmann::ordered_json& data);

// What the page is called and what its columns mean: the beginning of its data.
nlohmann::ordered_json PageHead(const std::string& title,
                                const std::vector<correlate::Dimension>& by);

// What its reader is to be careful about, a sentence each, beside changes and cautions.
nlohmann::ordered_json PageNotes(const ProfileReport& report);

// The domains' figures, each with its share by mode; `flame` is by domain and mode.
nlohmann::ordered_json PageDomains(const ProfileReport& report,
                                   const correlate::ProfileResult& flame);

}  // namespace xenoscope::report
