#include "profile/event_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/error.h"

namespace xenoscope::profile {
namespace {

using recording::EventInfo;

constexpr std::string_view kAgents = "agent";

// Sources of agents are "agent-DOMID", before format 1.7 "agent" for all.
bool IsOfAgent(const EventInfo& event) { return event.source.starts_with(kAgents); }

std::string Letters(const ModeSet& modes) {
  return fmt::format("{}{}{}", modes.user ? "u" : "", modes.kernel ? "k" : "",
                     modes.xen ? "h" : "");
}

bool AreLettersOf(std::string_view letters, const ModeSet& modes) {
  const auto has = [letters](char letter) { return letters.find(letter) != letters.npos; };
  return letters.find_first_not_of("ukh") == letters.npos && has('u') == modes.user &&
         has('k') == modes.kernel && has('h') == modes.xen;
}

bool AreSame(const EventInfo& a, const EventInfo& b) {
  return a.name == b.name && a.modes == b.modes && a.source == b.source;
}

// The number of the event, from 1, among those of its name, modes and source.
size_t OrdinalOf(std::span<const EventInfo> events, size_t event) {
  const auto same = [&](const EventInfo& other) { return AreSame(other, events[event]); };
  return 1 + static_cast<size_t>(std::ranges::count_if(events.first(event), same));
}

// Removes `suffix` from the end of `text`. Returns whether it was there.
bool Consume(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool Selects(std::string_view text, std::span<const EventInfo> events, size_t number) {
  const EventInfo& event = events[number];
  if (text == event.name) return true;
  if (text.find('#') != text.npos) Consume(text, fmt::format("#{}", OrdinalOf(events, number)));
  if (!event.source.empty() && !Consume(text, "@" + event.source) && IsOfAgent(event)) {
    Consume(text, fmt::format("@{}", kAgents));
  }
  if (text == event.name) return true;
  const size_t colon = text.rfind(':');
  return event.modes && colon != text.npos && text.substr(0, colon) == event.name &&
         AreLettersOf(text.substr(colon + 1), *event.modes);
}

EventGroup AllSelected(std::string_view text, std::span<const EventInfo> events) {
  EventGroup selected;
  for (size_t i = 0; i < events.size(); ++i) {
    if (Selects(text, events, i)) selected.push_back(static_cast<uint16_t>(i));
  }
  return selected;
}

// The texts for all groups.
std::set<std::string> Spellings(std::span<const EventInfo> events, const EventGroup& of) {
  std::set<std::string> texts;
  for (const uint16_t event : of) texts.insert(EventSpelling(events, GroupOf(events, event)));
  return texts;
}

absl::Status AmbiguousError(std::string_view text, std::span<const EventInfo> events,
                            const EventGroup& selected) {
  std::string message = fmt::format("event '{}' is ambiguous: give {}", text,
                                    fmt::join(Spellings(events, selected), " or "));
  for (const uint16_t event : selected) {
    if (GroupOf(events, event).size() == 1) continue;
    message += fmt::format("; one guest alone is {}", EventSpelling(events, {event}));
    break;
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<std::vector<EventInfo>> ReadEvents(const recording::Recording& recording) {
  std::vector<EventInfo> events = recording.info().events;
  if (events.size() > recording::kMaxRecordingEvents) {
    return InvalidError("recording.json has {} events; a recording can have {}", events.size(),
                        recording::kMaxRecordingEvents);
  }
  const auto is_known = [](const EventInfo& event) { return !event.source.empty(); };
  std::set<std::string_view> names;
  for (const EventInfo& event : recording.info().events) names.insert(event.name);
  if (names.size() == events.size() || std::ranges::all_of(events, is_known)) return events;
  const auto& sources = recording.info().sources;
  for (size_t i = 0; i < sources.size(); ++i) {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream, recording.OpenSamples(i));
    while (const recording::Sample* sample = stream.reader.Next()) {
      EventInfo& event = events[sample->event];
      if (event.source.empty()) event.source = sources[i].name;
      // Agents shared events then.
      if (event.source != sources[i].name && IsOfAgent(event)) event.source = kAgents;
    }
  }
  return events;
}

EventGroup GroupOf(std::span<const EventInfo> events, uint16_t event) {
  if (!IsOfAgent(events[event])) return {event};
  EventGroup group;
  for (size_t i = 0; i < events.size(); ++i) {
    if (IsOfAgent(events[i]) && events[i].name == events[event].name &&
        events[i].modes == events[event].modes &&
        OrdinalOf(events, i) == OrdinalOf(events, event)) {
      group.push_back(static_cast<uint16_t>(i));
    }
  }
  return group;
}

std::set<std::string> OtherEvents(std::span<const EventInfo> events,
                                  std::span<const EventGroup> groups) {
  EventGroup others;
  for (size_t i = 0; i < events.size(); ++i) {
    const auto event = static_cast<uint16_t>(i);
    const auto has = [event](const EventGroup& group) {
      return std::ranges::count(group, event) > 0;
    };
    if (std::ranges::none_of(groups, has)) others.push_back(event);
  }
  return Spellings(events, others);
}

std::string EventSpelling(std::span<const EventInfo> events, const EventGroup& group) {
  const EventInfo& event = events[group.front()];
  const std::string modes = event.modes ? ":" + Letters(*event.modes) : "";
  std::string source = event.source.empty() ? "" : "@" + event.source;
  if (group.size() > 1) source = fmt::format("@{}", kAgents);
  const std::string ordinal = fmt::format("#{}", OrdinalOf(events, group.front()));
  std::vector<std::string> texts;
  for (const std::string& number : {std::string(), ordinal}) {
    for (const std::string& by : {std::string(), source}) {
      if (!event.modes || *event.modes == kAllModes) {
        texts.push_back(fmt::format("{}{}{}", event.name, by, number));
      }
      texts.push_back(fmt::format("{}{}{}{}", event.name, modes, by, number));
    }
  }
  const auto is_unique = [&](const std::string& text) {
    return AllSelected(text, events) == group;
  };
  const auto found = std::ranges::find_if(texts, is_unique);
  return found == texts.end() ? texts.back() : *found;
}

absl::StatusOr<EventGroup> FindEvents(std::span<const EventInfo> events, std::string_view text) {
  EventGroup selected = AllSelected(text, events);
  if (selected.empty()) {
    EventGroup all;
    for (size_t i = 0; i < events.size(); ++i) all.push_back(static_cast<uint16_t>(i));
    return NotFoundError("there is no event '{}' in the recording; it has {}", text,
                         fmt::join(Spellings(events, all), ", "));
  }
  if (selected.size() == 1) return selected;
  if (GroupOf(events, selected.front()) != selected) {
    return AmbiguousError(text, events, selected);
  }
  return selected;
}

}  // namespace xenoscope::profile
