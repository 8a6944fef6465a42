#include "profile/event_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/error.h"

namespace xenoscope::profile {
namespace {

using recording::EventInfo;
using recording::RecordingInfo;

enum class EventKind : uint8_t {
  kCycles,
  kInstructions,
  kBranches,
  kBranchMisses,
  kCacheReferences,
  kCacheMisses,
  kOther,
};

struct KindName {
  std::string_view name;
  EventKind kind;
};

// The names of Linux's perf events, and those of libpfm4 for AMD's and Intel's processors; raw
// codes of the architectural events (AMD64 Architecture Programmer's Manual, volume 2; Intel
// Software Developer's Manual, volume 3).
constexpr std::array kKinds = std::to_array<KindName>({
    {"cycles", EventKind::kCycles},
    {"cpu-cycles", EventKind::kCycles},
    {"cpu_clk_unhalted", EventKind::kCycles},
    {"cycles_not_in_halt", EventKind::kCycles},
    {"unhalted_core_cycles", EventKind::kCycles},
    {"cpu_clk_thread_unhalted", EventKind::kCycles},
    {"r0076", EventKind::kCycles},
    {"r003c", EventKind::kCycles},
    {"instructions", EventKind::kInstructions},
    {"retired_instructions", EventKind::kInstructions},
    {"instruction_retired", EventKind::kInstructions},
    {"instructions_retired", EventKind::kInstructions},
    {"inst_retired", EventKind::kInstructions},
    {"r00c0", EventKind::kInstructions},
    {"branches", EventKind::kBranches},
    {"branch-instructions", EventKind::kBranches},
    {"retired_branch_instructions", EventKind::kBranches},
    {"branch_instructions_retired", EventKind::kBranches},
    {"br_inst_retired", EventKind::kBranches},
    {"branch-misses", EventKind::kBranchMisses},
    {"retired_mispredicted_branch_instructions", EventKind::kBranchMisses},
    {"retired_branch_instructions_mispredicted", EventKind::kBranchMisses},
    {"mispredicted_branch_retired", EventKind::kBranchMisses},
    {"br_misp_retired", EventKind::kBranchMisses},
    {"cache-references", EventKind::kCacheReferences},
    {"llc_references", EventKind::kCacheReferences},
    {"last_level_cache_references", EventKind::kCacheReferences},
    {"cache-misses", EventKind::kCacheMisses},
    {"llc_misses", EventKind::kCacheMisses},
    {"last_level_cache_misses", EventKind::kCacheMisses},
});

// Returns the name in lower case without the processor's model before it: "amd64_fam15h::NAME".
std::string PlainName(const EventInfo& event) {
  std::string name = absl::AsciiStrToLower(event.name);
  const size_t model = name.rfind("::");
  return model == name.npos ? name : name.substr(model + 2);
}

EventKind KindOf(const EventInfo& event) {
  std::string name = PlainName(event);
  // Unit masks that leave nothing out.
  for (const std::string_view all : {":any", ":any_p", ":all", ":all_branches"}) {
    if (name.ends_with(all)) name.erase(name.rfind(all));
  }
  const auto* const found = std::ranges::find(kKinds, name, &KindName::name);
  return found == kKinds.end() ? EventKind::kOther : found->kind;
}

// "cache-misses" as a key: "cache_misses".
std::string KeyOf(std::string_view text) {
  std::string key = absl::AsciiStrToLower(std::string(text));
  for (char& letter : key) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return key;
}

// A ratio of two kinds of events, which has a name of its own.
struct NamedRatio {
  EventKind numerator;
  EventKind denominator;
  std::string_view key;
  std::string_view title;
  std::string_view about;
  bool is_share;
};
constexpr std::array kNamedRatios = {
    NamedRatio{EventKind::kInstructions, EventKind::kCycles, "ipc", "IPC", "instructions per cycle",
               false},
    NamedRatio{EventKind::kBranchMisses, EventKind::kBranches, "branch_miss_rate", "branch misses",
               "part of branches that were mispredicted", true},
    NamedRatio{EventKind::kCacheMisses, EventKind::kCacheReferences, "cache_miss_rate",
               "cache misses", "part of cache references that missed", true},
};
constexpr double kThousand = 1000;

// Whether the event is counted wherever it happens: a timer that stands in for counters counts
// none.
bool IsCounted(const EventInfo& event) { return event.clocked_by == "pmu" && !event.waiting; }

// Returns the period of all events of the group; 0 if it is not known, or if there are several.
uint64_t PeriodOf(std::span<const EventInfo> events, const EventGroup& group) {
  const uint64_t period = events[group.front()].period;
  const bool one =
      std::ranges::all_of(group, [&](uint16_t event) { return events[event].period == period; });
  return one ? period : 0;
}

// Returns the sources that counted the group, in the order of their names.
std::vector<std::string> SourcesOf(std::span<const EventInfo> events, const EventGroup& group) {
  std::vector<std::string> sources;
  for (const uint16_t event : group) sources.push_back(events[event].source);
  std::ranges::sort(sources);
  return sources;
}

// Makes the ratios of two events.
class RatioMaker {
 public:
  RatioMaker(std::span<const EventInfo> events, const std::vector<ComparedEvent>& compared)
      : events_(events), compared_(compared) {}

  // Returns the ratio of these events, indices into `compared`, if there is one: the counts of the
  // first to those of the second.
  [[nodiscard]] std::optional<RatioColumn> Make(size_t numerator, size_t denominator) const {
    const EventKind over = Kind(numerator);
    const EventKind under = Kind(denominator);
    const auto* const named = std::ranges::find_if(kNamedRatios, [&](const NamedRatio& ratio) {
      return ratio.numerator == over && ratio.denominator == under;
    });
    if (named != kNamedRatios.end()) {
      return RatioColumn{std::string(named->key), std::string(named->title),
                         std::string(named->about), named->is_share,
                         RatioOf(numerator, denominator, 1)};
    }
    // Linux's own events have little to do with instructions.
    const bool per_thousand = over != EventKind::kCycles && over != EventKind::kInstructions &&
                              under == EventKind::kInstructions &&
                              Event(numerator).clocked_by != "linux";
    if (!per_thousand) return std::nullopt;
    const std::string name = PlainName(Event(numerator));
    return RatioColumn{KeyOf(name) + "_pti", name + " PTI",
                       fmt::format("{} per thousand instructions", name), false,
                       RatioOf(numerator, denominator, kThousand)};
  }

  // Returns why the events, which would have a ratio, do not; empty: they have.
  [[nodiscard]] std::string Obstacle(size_t numerator, size_t denominator) const {
    const EventInfo& over = Event(numerator);
    const EventInfo& under = Event(denominator);
    if (!IsCounted(over) || !IsCounted(under)) return "a timer stands in for the counters";
    if (SourcesOf(events_, compared_[numerator].group) !=
        SourcesOf(events_, compared_[denominator].group)) {
      return "different sources counted them";
    }
    if (over.modes != under.modes) return "they were counted in different modes";
    if (compared_[numerator].period == 0 || compared_[denominator].period == 0) {
      return "their periods are not known, or differ between guests";
    }
    return "";
  }

 private:
  [[nodiscard]] const EventInfo& Event(size_t number) const {
    return events_[compared_[number].group.front()];
  }
  [[nodiscard]] EventKind Kind(size_t number) const { return KindOf(Event(number)); }
  [[nodiscard]] correlate::EventRatio RatioOf(size_t numerator, size_t denominator,
                                              double unit) const {
    const auto over = static_cast<double>(compared_[numerator].period);
    const auto under = static_cast<double>(compared_[denominator].period);
    return {numerator, denominator, under > 0 ? unit * over / under : 0};
  }

  std::span<const EventInfo> events_;
  const std::vector<ComparedEvent>& compared_;
};

// Whether every domain that the counters of the event counted has samples, and none was lost.
bool IsComplete(const RecordingInfo& info, const EventInfo& event) {
  const bool has_one_source = event.source.empty() && info.sources.size() == 1;
  const std::string& source = has_one_source ? info.sources.front().name : event.source;
  for (const recording::StreamInfo& stream : info.streams) {
    const bool of_source = stream.source.empty() || source.empty() || stream.source == source;
    if (of_source && stream.logged.lost + stream.other_modes > 0) return false;
  }
  if (source != "xenoprof") return true;
  return std::ranges::none_of(info.domains, [](const recording::DomainInfo& domain) {
    return domain.role == recording::Role::kNone;
  });
}

}  // namespace

EventComparison CompareEvents(const RecordingInfo& info, std::span<const EventInfo> events,
                              const std::vector<EventGroup>& groups) {
  EventComparison comparison;
  for (const EventGroup& group : groups) {
    const EventInfo& event = events[group.front()];
    const std::string text = EventSpelling(events, group);
    const std::string title = PlainName(event) + text.substr(event.name.size());
    comparison.events.push_back({group, text, title, KeyOf(title), PeriodOf(events, group)});
  }
  const RatioMaker maker(events, comparison.events);
  for (size_t over = 0; over < groups.size(); ++over) {
    for (size_t under = 0; under < groups.size(); ++under) {
      std::optional<RatioColumn> ratio;
      if (over != under) ratio = maker.Make(over, under);
      if (!ratio) continue;
      const auto has_key = [&](const RatioColumn& other) { return other.key == ratio->key; };
      if (std::ranges::any_of(comparison.ratios, has_key))
        continue;  // of an event that is the same
      if (const std::string why = maker.Obstacle(over, under); !why.empty()) {
        comparison.cautions.push_back(fmt::format("There is no ratio of {} to {}, because {}.",
                                                  comparison.events[over].text,
                                                  comparison.events[under].text, why));
      } else {
        comparison.ratios.push_back(*std::move(ratio));
      }
    }
  }
  comparison.complete = IsComplete(info, events[groups.front().front()]);
  return comparison;
}

std::vector<uint8_t> EventNumbers(const EventComparison& comparison) {
  std::vector<uint8_t> numbers(recording::kMaxRecordingEvents);
  for (size_t i = 0; i < comparison.events.size(); ++i) {
    for (const uint16_t event : comparison.events[i].group) {
      numbers[event] = static_cast<uint8_t>(i);
    }
  }
  return numbers;
}

std::vector<EventGroup> GroupsComparableWith(const RecordingInfo& info,
                                             std::span<const EventInfo> events,
                                             const EventGroup& own) {
  std::vector<EventGroup> chosen = {own};
  // Those that are comparable with an event that was chosen last.
  for (size_t next = 0; next < chosen.size(); ++next) {
    for (size_t i = 0; i < events.size(); ++i) {
      std::vector<EventGroup> more = chosen;
      more.push_back(GroupOf(events, static_cast<uint16_t>(i)));
      if (std::ranges::find(chosen, more.back()) != chosen.end()) continue;
      const size_t before = CompareEvents(info, events, chosen).ratios.size();
      if (CompareEvents(info, events, more).ratios.size() > before) chosen.swap(more);
    }
  }
  return chosen;
}

absl::StatusOr<std::vector<EventGroup>> FindEventGroups(std::span<const EventInfo> events,
                                                        std::string_view text) {
  const bool opens = text.starts_with('{');
  if (opens != text.ends_with('}')) {
    return InvalidError("event '{}': braces do not match; give NAME or {{NAME,NAME,...}}", text);
  }
  if (opens) text = text.substr(1, text.size() - 2);
  std::vector<EventGroup> groups;
  std::vector<std::string> words = {std::string(text)};
  if (opens) words = absl::StrSplit(words.front(), ',');
  for (const std::string& word : words) {
    XENOSCOPE_ASSIGN_OR_RETURN(EventGroup group, FindEvents(events, word));
    if (std::ranges::find(groups, group) != groups.end()) {
      return InvalidError("event '{}' is named twice; name it once", word);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace xenoscope::profile
