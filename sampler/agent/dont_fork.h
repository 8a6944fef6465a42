// Memory that fork(2) does not pass on to child processes.
#pragma once

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::sampler {

// Excludes the pages of `memory` from all processes that this one makes from now on (madvise(2),
// MADV_DONTFORK), so that a process that reads what one guest sends (sampler/sandbox.h) cannot
// reach the memory of another guest. Errors: some pages are not mapped.
absl::Status DontFork(Bytes memory);

}  // namespace xenoscope::sampler
