// Chooses which events of a recording a profile shows beside its own, and their ratios:
// instructions per cycle, misses per thousand instructions (docs/method.md, section 9).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/event_sums.h"
#include "profile/event_choice.h"
#include "recording/info.h"

namespace xenoscope::profile {

// A ratio of two events.
struct RatioColumn {
  std::string key;              // the key in CSV and JSON: "ipc"
  std::string title;            // the title for people: "IPC"
  std::string about;            // what it is: "instructions per cycle"
  bool is_share = false;        // whether it is a part of 1, shown in percent
  correlate::EventRatio ratio;  // its events are indices into EventComparison::events
};

// An event of a comparison.
struct ComparedEvent {
  EventGroup group;
  std::string text;     // the text that selects it, as in --event
  std::string title;    // the text without the processor's model
  std::string key;      // the title as part of a key in CSV and JSON
  uint64_t period = 0;  // counts between two samples; 0: not known
};

// The events of a profile: first its own, whose shares are estimated, then those beside it.
struct EventComparison {
  std::vector<ComparedEvent> events;
  std::vector<RatioColumn> ratios;
  // Whether the samples are all that the counters counted: no domain was left out, and none lost.
  bool complete = false;
  std::vector<std::string> cautions;  // why events have no ratio, one sentence each

  [[nodiscard]] bool HasSeveral() const { return events.size() > 1; }
};

// Returns the comparison of these events, of which there is at least one: all ratios that they
// have. Cautions say why two of them have none. O(events^2).
[[nodiscard]] EventComparison CompareEvents(const recording::RecordingInfo& info,
                                            std::span<const recording::EventInfo> events,
                                            const std::vector<EventGroup>& groups);

// Returns the number in the comparison of each event of a recording, by its number there; 0 for
// events that are not compared.
[[nodiscard]] std::vector<uint8_t> EventNumbers(const EventComparison& comparison);

// Returns `own` and the events of the recording that have a ratio with it, or with one of these:
// what a profile shows if the user has named no event. O(events^4), of a few events.
[[nodiscard]] std::vector<EventGroup> GroupsComparableWith(
    const recording::RecordingInfo& info, std::span<const recording::EventInfo> events,
    const EventGroup& own);

// Returns the events that `text` selects: a text of FindEvents, or several in braces,
// "{cycles,instructions}", of which the first is the profile's own. Errors: those of FindEvents;
// InvalidArgument for braces that do not match and for an event that is named twice.
[[nodiscard]] absl::StatusOr<std::vector<EventGroup>> FindEventGroups(
    std::span<const recording::EventInfo> events, std::string_view text);

}  // namespace xenoscope::profile
