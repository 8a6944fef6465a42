// Why a recording with call chains has none of some domains, for people.
#pragma once

#include <string>
#include <vector>

#include "recording/info.h"

namespace xenoscope::report {

// A sentence for each domain of which xenoprof took samples with call chains and no caller came.
// None where no call chains were asked for, or a domain has too few samples to tell.
std::vector<std::string> ChainNotes(const recording::RecordingInfo& info);

}  // namespace xenoscope::report
