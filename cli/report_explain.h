// `report --explain FUNCTION`: which samples a row has, and how sure they make it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/profile_source.h"
#include "report/profile/explain_view.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::cli {

// Returns the explanation as text or JSON. Errors: as ProfileSource::Profile; NotFound where no
// sample is in such a function.
absl::StatusOr<std::string> ExplainReport(const ProfileSource& source,
                                          const ProfileOptions& request,
                                          const report::ExplainSelection& selection,
                                          const std::string& format, report::TextStyle style,
                                          report::ProfileReport& out);

}  // namespace xenoscope::cli
