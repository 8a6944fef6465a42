// Notes on domains without call chains in a recording that asked for them.
#pragma once

#include <string>
#include <vector>

#include "recording/info.h"

namespace xenoscope::report {

// Returns a sentence for each reason why xenoprof found no callers in samples with call chains.
// Empty if no call chains were requested, or if all domains have callers or too few samples.
std::vector<std::string> ChainNotes(const recording::RecordingInfo& info);

}  // namespace xenoscope::report
