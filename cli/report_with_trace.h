// Formats of `report` that hold the trace too: they are made while it is read.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/profile_source.h"
#include "report/profile_format.h"
#include "report/profile_view.h"

namespace xenoscope::cli {

// The page of the profile by the columns of `out`. Errors: as ProfileSource::Profile; Unimplemented
// where the command was built without the page.
absl::StatusOr<std::string> HtmlReport(const ProfileSource& source, const ProfileRequest& request,
                                       const report::ProfileFormatOptions& options,
                                       report::ProfileReport& out);

// A Perfetto trace into the file, or to standard output where `path` is empty. Errors: as
// ProfileSource::Profile; those of writing.
absl::Status WritePerfetto(const ProfileSource& source, const ProfileRequest& request,
                           const std::string& path, report::ProfileReport& out);

}  // namespace xenoscope::cli
