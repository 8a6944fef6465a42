// The functions in which threads were most, by the samples of a recording.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "report/threads/threads_view.h"

namespace xenoscope::cli {

// Returns them for threads, or for what `by` joins, of each domain by the first of the recording's
// events that has samples of it; and the same while a vCPU of each of the domains `waiting` waited
// for the pCPU, by Xen's trace. The recording is read twice for each of these and each event.
// Errors (NotFound): the recording has no samples; those of reading.
absl::StatusOr<report::HotFunctions> HotFunctionsOf(const std::string& recording,
                                                    report::ThreadsBy by,
                                                    const std::vector<DomainId>& waiting);

}  // namespace xenoscope::cli
