#include "sampler/ftrace/event_list.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/error.h"

namespace xenoscope::sampler {
namespace {

bool IsName(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

bool IsEntry(std::string_view text) {
  if (text.size() > kMaxListedEventBytes) return false;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return IsName(text);
  const std::string_view event = text.substr(colon + 1);
  return IsName(text.substr(0, colon)) && (event == "*" || IsName(event));
}

}  // namespace

absl::Status CheckEventList(const std::vector<std::string>& events) {
  if (events.size() > kMaxListedEvents) {
    return InvalidError("{} events or systems of events are too many, the limit is {}",
                        events.size(), kMaxListedEvents);
  }
  for (const std::string& event : events) {
    if (IsEntry(event)) continue;
    return InvalidError(
        "'{}' names no events of a kernel: write SYSTEM or SYSTEM:EVENT, as in "
        "/sys/kernel/tracing/available_events",
        event.substr(0, kMaxListedEventBytes));
  }
  return absl::OkStatus();
}

std::string EventDirectory(std::string_view event) {
  std::string directory(event);
  std::ranges::replace(directory, ':', '/');
  if (directory.ends_with("/*")) directory.resize(directory.size() - 2);
  return directory;
}

}  // namespace xenoscope::sampler
