// Chooses the samples of a profile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/event_choice.h"
#include "recording/info.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// Returns whether samples are taken from the trace. `source` is "recorded", "trace", or "auto" for
// the recorded ones if there are any. Errors (NotFound): there are no samples of that kind; the
// message calls the recording `input`.
absl::StatusOr<bool> ChooseTraceSamples(const std::string& source,
                                        const recording::RecordingInfo& info, bool has_trace,
                                        const std::string& input);

// Returns the events that `text` selects (profile/event_choice.h); where it is empty, those shown
// with the first one that has a sample behind `skipped_bytes` (SampleSelection); events of vCPUs
// that waited come after all others. `events` are those of ReadEvents. Errors: those of FindEvents
// and of reading.
absl::StatusOr<EventGroup> ChooseEvents(const recording::Recording& recording,
                                        std::span<const recording::EventInfo> events,
                                        const std::string& text,
                                        const std::vector<uint64_t>& skipped_bytes);

// Returns whether samples of the event stand for time: it counts cycles of the processor, or a
// timer clocks it in their place.
bool CountsTime(const recording::EventInfo& event);

// Returns the text of the group for people: "cycles (clocked by hpet:500)".
std::string EventText(std::span<const recording::EventInfo> events, const EventGroup& group);

// Returns a sentence if the event was not counted in all modes; else an empty string. Before format
// 1.8 only samples of other modes that were left out show it.
std::string RestrictionOf(const recording::RecordingInfo& info, const recording::EventInfo& event);

}  // namespace xenoscope::profile
