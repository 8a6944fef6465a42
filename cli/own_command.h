// How this program starts itself once more.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/child_process.h"

namespace xenoscope::cli {

// Returns the words that start this program, before its arguments. Where a dynamic loader was
// started to run it (ld.so [OPTION...] PROGRAM, as the portable tarball does), what the kernel
// takes for the program is the loader: then these are the loader, its options and the program.
std::vector<std::string> OwnCommand();

// Starts this program with these arguments, in a process group of its own. It inherits the file
// `inherited` under the same number; -1: none. Errors: those of ChildProcess::Start.
absl::StatusOr<sampler::ChildProcess> StartOwn(std::span<const std::string> arguments,
                                               int inherited = -1);

}  // namespace xenoscope::cli
