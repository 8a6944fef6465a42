// A profile as pprof's profile.proto (google/pprof, proto/profile.proto), compressed by gzip.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Values: samples and, where the event counts time, cycles and nanoseconds; whole numbers whose
// sums are those of the rows, rounded. The rows are by stack and address; each other column is a
// label, beside "state" for rows by exit: guest, exit, running, ... Mappings are files, without
// their places in memory: these differ from process to process. Errors: Internal, by zlib.
absl::StatusOr<std::string> ProfilePprof(const ProfileReport& report,
                                         const ProfileSelection& selection);

}  // namespace xenoscope::report
