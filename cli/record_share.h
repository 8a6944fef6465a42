// `record --share`: guests get from dom0 what their owners may see of a recording (docs/shared.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/record_options.h"
#include "recording/info.h"

namespace xenoscope::cli {

// Throws a usage error where the domains cannot get anything: they have no agents, or no trace is
// recorded.
void CheckShare(const std::vector<std::string>& share, const RecordOptions& recorded,
                bool continuous);

// Sends each of these domains its own part of the finished recording, one after the other. What a
// guest does not get is a note on stderr, with the reason: it does not end the recording. Takes
// some 40 s at most for each guest, and the time in which `push` reads the recording. Errors: the
// parts cannot be made.
absl::Status ShareRecording(const std::string& recording, const recording::RecordingInfo& info,
                            const std::vector<std::string>& share);

}  // namespace xenoscope::cli
