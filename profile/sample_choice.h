// Which samples of a recording a profile is of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "recording/info.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// Where samples come from: "recorded", the "trace" itself, or "auto": the recorded ones where there
// are any. Returns whether they are the trace's. Errors (NotFound): `info` and `has_trace` have
// none of the kind that is asked for; `input` is what the message calls them by.
absl::StatusOr<bool> ChooseTraceSamples(const std::string& source,
                                        const recording::RecordingInfo& info, bool has_trace,
                                        const std::string& input);

// The number of the event of this name; where the name is empty, of the first event that has a
// sample behind `skipped_bytes` (SampleSelection). Errors: NotFound, with the names that there are;
// those of reading.
absl::StatusOr<uint16_t> ChooseEvent(const recording::Recording& recording, const std::string& name,
                                     const std::vector<uint64_t>& skipped_bytes);

// Whether a sample of the event stands for time: it counts the processor's cycles, or is clocked by
// the timer that stood in for them.
bool CountsTime(const recording::EventInfo& event);

// "cycles (clocked by hpet:500)".
std::string EventText(const recording::EventInfo& event);

}  // namespace xenoscope::profile
