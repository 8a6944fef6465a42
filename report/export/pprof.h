// Writes a profile as pprof's profile.proto (google/pprof, proto/profile.proto), compressed with
// gzip.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Returns the compressed profile. The values are samples; where the event counts time, there are
// cycles and nanoseconds too. They are whole numbers; their sums are the rounded sums of the rows.
// The rows must be by stack and address. Each other column is a label. Rows by exit have the label
// "state" too: guest, exit, running, ... Mappings are files without their places in memory, because
// the places differ from process to process; the first one has most samples. `roots` are columns
// that are also frames, outside of all others, the first one outermost. Errors: Internal when zlib
// fails.
absl::StatusOr<std::string> ProfilePprof(const ProfileReport& report,
                                         const ProfileSelection& selection,
                                         const std::vector<correlate::Dimension>& roots);

}  // namespace xenoscope::report
