// The formats of `report` that contain the trace too: they are written while it is read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/profile_source.h"
#include "report/profile/profile_format.h"
#include "report/profile/profile_view.h"
#include "report/profile/row_filter.h"

namespace xenoscope::cli {

// The page of the profile by `columns`, among which are those of `wheres`: tables and
// flame graph have only the rows that fit these, VM exits and timeline are of all. Errors: as
// ProfileSource::Profile; Unimplemented where the command was built without the page.
absl::StatusOr<std::string> HtmlReport(const ProfileSource& source, const ProfileOptions& request,
                                       profile::ProfileColumns columns,
                                       const std::vector<report::RowFilter>& filters,
                                       const report::ProfileFormatOptions& options,
                                       report::ProfileReport& out);

// Writes samples and trace in a format with a timeline (ProfileFormat::timeline) to the file, or to
// standard output where `path` is empty. `title` names the recording. Errors: as
// ProfileSource::Profile; those of writing.
absl::Status WriteTimeline(const ProfileSource& source, const ProfileOptions& request,
                           const report::ProfileFormat& format, profile::ProfileColumns columns,
                           const std::string& path, const std::string& title,
                           report::ProfileReport& out);

}  // namespace xenoscope::cli
