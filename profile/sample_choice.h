// Chooses the samples of a profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "recording/info.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// Returns whether samples are taken from the trace. `source` is "recorded", "trace", or "auto" for
// the recorded ones if there are any. Errors (NotFound): there are no samples of that kind; the
// message calls the recording `input`.
absl::StatusOr<bool> ChooseTraceSamples(const std::string& source,
                                        const recording::RecordingInfo& info, bool has_trace,
                                        const std::string& input);

// Returns the number of the event of this name; where the name is empty, of the first one with a
// sample behind `skipped_bytes` (SampleSelection). Errors: NotFound, with the names that there are;
// those of reading.
absl::StatusOr<uint16_t> ChooseEvent(const recording::Recording& recording, const std::string& name,
                                     const std::vector<uint64_t>& skipped_bytes);

// Returns whether samples of the event stand for time: it counts cycles of the processor, or a
// timer clocks it in their place.
bool CountsTime(const recording::EventInfo& event);

// Returns "cycles (clocked by hpet:500)".
std::string EventText(const recording::EventInfo& event);

}  // namespace xenoscope::profile
