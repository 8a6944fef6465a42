// Memory that processes made by fork(2) do not have.
#pragma once

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::sampler {

// Leaves the pages of `memory` out of all processes that this one makes from now on (madvise(2),
// MADV_DONTFORK): a process that reads what a guest sends (sampler/sandbox.h) has no part in the
// memory of another guest. Errors: pages of it are not mapped.
absl::Status DontFork(Bytes memory);

}  // namespace xenoscope::sampler
