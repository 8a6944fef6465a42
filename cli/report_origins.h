// `report --origins`: where the names of samples come from, by the profile of all addresses.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/profile_source.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::cli {

// Returns the origins as text, CSV or JSON. Errors: as ProfileSource::Profile.
absl::StatusOr<std::string> OriginsReport(const ProfileSource& source,
                                          const ProfileOptions& request, const std::string& format,
                                          report::TextStyle style, report::ProfileReport& out);

}  // namespace xenoscope::cli
