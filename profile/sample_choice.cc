#include "profile/sample_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

#include "base/error.h"
#include "profile/recorded_samples.h"

namespace xenoscope::profile {
namespace {

using recording::Recording;
using recording::RecordingInfo;

// The first event of which there is a sample; the first where there is none.
absl::StatusOr<uint16_t> FirstSampled(const Recording& recording,
                                      const std::vector<uint64_t>& skipped_bytes) {
  for (size_t i = 0; i < recording.info().events.size(); ++i) {
    SampleSelection selection;
    selection.event = static_cast<uint16_t>(i);
    selection.skipped_bytes = skipped_bytes;
    XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                               RecordedSamples::Open(recording, selection, nullptr));
    if (samples.Next() != nullptr) return selection.event;
  }
  return 0;
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

absl::StatusOr<uint16_t> ChooseEvent(const Recording& recording, const std::string& name,
                                     const std::vector<uint64_t>& skipped_bytes) {
  const RecordingInfo& info = recording.info();
  if (info.events.empty())
    return NotFoundError("the recording has no samples; `xenoscope summary` shows its trace");
  std::vector<std::string> names;
  for (size_t i = 0; i < info.events.size(); ++i) {
    if (info.events[i].name == name) return static_cast<uint16_t>(i);
    names.push_back(info.events[i].name);
  }
  if (name.empty()) return FirstSampled(recording, skipped_bytes);
  return NotFoundError("there is no event '{}' in the recording; it has {}", name,
                       fmt::join(names, ", "));
}

bool CountsTime(const recording::EventInfo& event) {
  if (event.clocked_by == "linux") return false;  // its faults and switches
  if (!event.clocked_by.empty() && event.clocked_by != "pmu") return true;
  return event.name.find("cycle") != std::string::npos ||
         event.name.find("cpu_clk") != std::string::npos;
}

std::string EventText(const recording::EventInfo& event) {
  const bool counted =
      event.clocked_by.empty() || event.clocked_by == "pmu" || event.clocked_by == "linux";
  if (counted) return event.name;
  return fmt::format("{} (clocked by {})", event.name, event.clocked_by);
}

}  // namespace xenoscope::profile
