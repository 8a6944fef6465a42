// Notes on call chains that are missing or end early, in a recording that asked for them.
#pragma once

#include <string>
#include <vector>

#include "profile/unwound_samples.h"
#include "recording/info.h"

namespace xenoscope::report {

// Returns a sentence for each reason why xenoprof found no callers, or hardly any, in samples with
// call chains.
// Empty if no call chains were requested, or if all domains have callers or too few samples.
std::vector<std::string> ChainNotes(const recording::RecordingInfo& info);

// Returns how the chains ended that were unwound from recorded stacks, and what would help. Empty
// if there were none.
std::vector<std::string> UnwindNotes(const recording::RecordingInfo& info,
                                     const profile::UnwindResults& results);

}  // namespace xenoscope::report
