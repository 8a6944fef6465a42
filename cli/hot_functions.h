// The functions in which threads were most, by the samples of a recording.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "report/threads/threads_view.h"

namespace xenoscope::cli {

// Returns them for threads, or for what `by` joins, of each domain by the first of the recording's
// events that has samples of it. Errors (NotFound): the recording has no samples; those of reading.
absl::StatusOr<report::HotFunctions> HotFunctionsOf(const std::string& recording,
                                                    report::ThreadsBy by);

}  // namespace xenoscope::cli
