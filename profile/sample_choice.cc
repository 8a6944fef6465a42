#include "profile/sample_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "profile/recorded_samples.h"

namespace xenoscope::profile {
namespace {

using recording::Recording;
using recording::RecordingInfo;

absl::StatusOr<bool> HasSamples(const Recording& recording, uint16_t event,
                                const std::vector<uint64_t>& skipped_bytes) {
  SampleSelection selection;
  selection.events = {event};
  selection.skipped_bytes = skipped_bytes;
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                             RecordedSamples::Open(recording, selection, nullptr));
  return samples.Next() != nullptr;
}

// The first event of which there is a sample; the first where there is none. Samples of vCPUs that
// waited do not show where time went: they are chosen where there are no others.
absl::StatusOr<uint16_t> FirstSampled(const Recording& recording,
                                      const std::vector<uint64_t>& skipped_bytes) {
  const std::vector<recording::EventInfo>& events = recording.info().events;
  for (const bool waiting : {false, true}) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].waiting != waiting) continue;
      const auto event = static_cast<uint16_t>(i);
      XENOSCOPE_ASSIGN_OR_RETURN(const bool sampled, HasSamples(recording, event, skipped_bytes));
      if (sampled) return event;
    }
  }
  return 0;
}

// "user and kernel mode", "Xen".
std::string NameModes(const ModeSet& modes) {
  std::vector<std::string_view> names;
  if (modes.user) names.emplace_back("user mode");
  if (modes.kernel) names.emplace_back("kernel mode");
  if (modes.xen) names.emplace_back("Xen");
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

absl::StatusOr<bool> ChooseTraceSamples(const std::string& source, const RecordingInfo& info,
                                        bool has_trace, const std::string& input) {
  const bool wanted = source == "trace" || (source == "auto" && info.sources.empty());
  if (wanted && !has_trace) {
    return NotFoundError("{}: the recording has neither samples nor a trace; record again", input);
  }
  if (!wanted && info.sources.empty()) {
    return NotFoundError(
        "{}: the recording has no samples; --source trace uses the VM exits in the trace", input);
  }
  return wanted;
}

absl::StatusOr<EventGroup> ChooseEvents(const Recording& recording,
                                        std::span<const recording::EventInfo> events,
                                        const std::string& text,
                                        const std::vector<uint64_t>& skipped_bytes) {
  if (events.empty()) {
    return NotFoundError("the recording has no samples; `xenoscope summary` shows its trace");
  }
  if (!text.empty()) return FindEvents(events, text);
  XENOSCOPE_ASSIGN_OR_RETURN(const uint16_t first, FirstSampled(recording, skipped_bytes));
  return GroupOf(events, first);
}

bool CountsTime(const recording::EventInfo& event) {
  if (event.clocked_by == "linux") return false;  // its faults and switches
  if (!event.clocked_by.empty() && event.clocked_by != "pmu") return true;
  return event.name.find("cycle") != std::string::npos ||
         event.name.find("cpu_clk") != std::string::npos;
}

std::string EventText(std::span<const recording::EventInfo> events, const EventGroup& group) {
  const recording::EventInfo& event = events[group.front()];
  const bool counted =
      event.clocked_by.empty() || event.clocked_by == "pmu" || event.clocked_by == "linux";
  const std::string text = EventSpelling(events, group);
  return counted ? text : fmt::format("{} (clocked by {})", text, event.clocked_by);
}

std::string RestrictionOf(const RecordingInfo& info, const recording::EventInfo& event) {
  if (event.modes) {
    if (*event.modes == kAllModes) return "";
    return fmt::format("Samples were taken in {} only.", NameModes(*event.modes));
  }
  uint64_t left_out = 0;
  for (const recording::StreamInfo& stream : info.streams) {
    if (event.source.empty() || stream.source == event.source) left_out += stream.other_modes;
  }
  if (left_out == 0) return "";
  return fmt::format(
      "{} samples of modes that were not requested were left out; the recording does not say which "
      "modes these are.",
      left_out);
}

}  // namespace xenoscope::profile
