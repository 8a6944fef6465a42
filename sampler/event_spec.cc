#include "sampler/event_spec.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/error.h"

namespace xenoscope::sampler {
namespace {

std::optional<uint64_t> Number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Removes from `text` the last `mark` and the number behind it, and returns that; nothing if it is
// no number.
std::optional<uint64_t> TakeNumber(std::string_view& text, char mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = Number(text.substr(at + 1), 10);
  if (number) text = text.substr(0, at);
  return number;
}

}  // namespace

absl::StatusOr<EventSpec> ParseEventSpec(std::string_view text) {
  constexpr uint64_t kMaxHz = 1'000'000;
  EventSpec spec;
  std::string_view rest = text;
  spec.hz = TakeNumber(rest, '@');
  if (!spec.hz) spec.period = TakeNumber(rest, ':');
  const size_t colon = rest.rfind(':');
  const size_t last = rest.find_last_of(":@");
  if (last != std::string_view::npos && last + 1 < rest.size() &&
      rest.find_first_not_of("0123456789", last + 1) == std::string_view::npos) {
    return InvalidError("event '{}': the number {} is too large", text, rest.substr(last + 1));
  }
  const std::string_view modes =
      colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  if (!modes.empty() && modes.find_first_not_of("ukh") == std::string_view::npos) {
    spec.user = modes.find('u') != std::string_view::npos;
    spec.kernel = modes.find('k') != std::string_view::npos;
    spec.hypervisor = modes.find('h') != std::string_view::npos;
    rest = rest.substr(0, colon);
  }
  if (rest.empty() || rest.ends_with(':') || rest.find('@') != std::string_view::npos) {
    return InvalidError(
        "event '{}' is not NAME[:MODES][:PERIOD|@HZ]: cycles:u:1000000, instructions@500", text);
  }
  if (spec.period && *spec.period == 0) {
    return InvalidError("event '{}': a period of 0 is not valid; give 1 or more", text);
  }
  if (spec.hz && (*spec.hz == 0 || *spec.hz > kMaxHz)) {
    return InvalidError("event '{}': the rate must be 1 to {} samples a second", text, kMaxHz);
  }
  spec.name = rest;
  return spec;
}

absl::StatusOr<std::vector<EventText>> SplitEventTexts(std::span<const std::string> texts) {
  std::vector<EventText> events;
  uint32_t groups = 0;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (true) {
      const bool is_group = rest.starts_with('{');
      const size_t closed = is_group ? rest.find('}') : 0;
      const auto wrong = [&text] {
        return InvalidError("events '{}' are not NAME,NAME,... or {{NAME,NAME,...}}", text);
      };
      if (closed == rest.npos) return wrong();
      const size_t end = std::min(rest.find(',', closed), rest.size());
      const std::string_view names = is_group ? rest.substr(1, closed - 1) : rest.substr(0, end);
      const std::string_view suffix =
          is_group ? rest.substr(closed + 1, end - closed - 1) : std::string_view();
      if (suffix.find_first_of("{}") != suffix.npos) return wrong();
      std::optional<uint32_t> group;
      if (is_group) group = groups++;
      for (const auto name : absl::StrSplit(absl::string_view(names.data(), names.size()), ',')) {
        if (name.empty() || name.find_first_of("{}") != name.npos) return wrong();
        events.push_back({std::string(name.data(), name.size()) + std::string(suffix), group});
      }
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
  return events;
}

absl::StatusOr<std::vector<EventSpec>> ParseEventSpecs(std::span<const std::string> texts) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<EventText> events, SplitEventTexts(texts));
  std::vector<EventSpec> specs;
  for (const EventText& event : events) {
    XENOSCOPE_ASSIGN_OR_RETURN(EventSpec spec, ParseEventSpec(event.text));
    spec.group = event.group;
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::optional<uint32_t> RawCode(std::string_view name) {
  if (name.size() != 5 || name[0] != 'r') return std::nullopt;
  const auto code = Number(name.substr(1), 16);
  if (!code) return std::nullopt;
  return static_cast<uint32_t>(*code);
}

}  // namespace xenoscope::sampler
