#include "guests/ftrace/formats.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"

namespace xenoscope::guests {
namespace {

// The largest event: what an offset in __data_loc can reach.
constexpr uint32_t kMaxEventBytes = 1U << 16;

// Cuts the next line off the text.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns the value of "KEY:VALUE;" in a line of a field.
std::string_view ValueOf(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + key.size());
  return Trimmed(rest.substr(0, rest.find(';')));
}

// Parses "field:TYPE NAME[COUNT]; offset:N; size:N; signed:N;".
absl::StatusOr<EventField> ParseField(std::string_view line) {
  std::string_view declaration = ValueOf(line, "field:");
  EventField field;
  field.is_dynamic = declaration.starts_with("__data_loc");
  if (const size_t bracket = declaration.rfind('['); bracket != std::string_view::npos) {
    field.is_array = true;
    // Of a dynamic array the brackets belong to the type, before the name.
    if (declaration.ends_with(']')) declaration = Trimmed(declaration.substr(0, bracket));
  }
  field.name = declaration.substr(declaration.find_last_of(" \t*") + 1);
  const auto offset = ParseNumber(ValueOf(line, "offset:"));
  const auto size = ParseNumber(ValueOf(line, "size:"));
  if (field.name.empty() || !offset || !size || *offset > kMaxEventBytes ||
      *size > kMaxEventBytes) {
    return InvalidError("'{}' is no field of an event", Trimmed(line).substr(0, 80));
  }
  field.offset = *offset;
  field.size = *size;
  field.is_signed = ValueOf(line, "signed:") == "1";
  if (field.is_dynamic && field.size != sizeof(uint32_t)) {
    return InvalidError("the place of the value of {} has {} bytes, not 4", field.name, field.size);
  }
  return field;
}

// Parses the fields of one part, and its ID if it has one.
absl::StatusOr<EventFormat> ParsePart(std::string_view text, std::optional<uint32_t>& id) {
  EventFormat format;
  while (!text.empty()) {
    const std::string_view line = Trimmed(TakeLine(text));
    if (line.starts_with("ID:")) id = ParseNumber(ValueOf(line, "ID:"));
    if (!line.starts_with("field:")) continue;
    if (format.fields.size() == kMaxFields) {
      return InvalidError("an event has more than {} fields", kMaxFields);
    }
    XENOSCOPE_ASSIGN_OR_RETURN(EventField field, ParseField(line));
    format.fields.push_back(std::move(field));
  }
  return format;
}

absl::StatusOr<PageLayout> ParsePage(std::string_view text) {
  std::optional<uint32_t> id;
  XENOSCOPE_ASSIGN_OR_RETURN(const EventFormat page, ParsePart(text, id));
  const EventField* const timestamp = page.Find("timestamp");
  const EventField* const commit = page.Find("commit");
  const EventField* const data = page.Find("data");
  if (timestamp == nullptr || commit == nullptr || data == nullptr || timestamp->offset != 0 ||
      timestamp->size != sizeof(uint64_t) || commit->offset < timestamp->size ||
      (commit->size != sizeof(uint32_t) && commit->size != sizeof(uint64_t)) ||
      data->offset < commit->offset + commit->size || data->size < sizeof(uint64_t) ||
      data->offset + data->size > kMaxPageSize) {
    return InvalidError("header_page does not describe a page of a trace buffer");
  }
  return PageLayout{commit->offset, commit->size, data->offset, data->size};
}

absl::Status AddEvent(std::string_view name, std::string_view text, Formats& formats) {
  std::optional<uint32_t> id;
  XENOSCOPE_ASSIGN_OR_RETURN(EventFormat format, ParsePart(text, id));
  if (!id || *id > UINT16_MAX) return InvalidError("the format of {} has no ID", name);
  format.id = static_cast<uint16_t>(*id);
  const size_t slash = name.find('/');
  format.system = name.substr(0, slash);
  format.name = name.substr(slash + 1);
  format.text = text;
  const auto known = std::ranges::find(formats.events, format.id, &EventFormat::id);
  if (known != formats.events.end()) {
    *known = std::move(format);
  } else if (formats.events.size() == kMaxFormats) {
    return InvalidError("there are more than {} formats of events", kMaxFormats);
  } else {
    formats.events.push_back(std::move(format));
  }
  return absl::OkStatus();
}

}  // namespace

const EventField* EventFormat::Find(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &EventField::name);
  return found == fields.end() ? nullptr : &*found;
}

absl::StatusOr<Formats> ParseFormats(std::string_view text) {
  if (text.size() > kMaxFormatsBytes) {
    return InvalidError("the formats of events have {} bytes, more than {}", text.size(),
                        kMaxFormatsBytes);
  }
  Formats formats;
  while (!text.empty()) {
    const std::string_view title = TakeLine(text);
    // A part ends where the next title begins.
    const size_t end = text.starts_with("# ") ? 0 : std::min(text.find("\n# "), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end == 0 ? 0 : end + 1, text.size()));
    if (title == "# header_page") {
      XENOSCOPE_ASSIGN_OR_RETURN(formats.page, ParsePage(part));
    } else if (title.starts_with("# ") && title.find('/') != std::string_view::npos) {
      XENOSCOPE_RETURN_IF_ERROR(AddEvent(title.substr(2), part, formats));
    }
  }
  return formats;
}

}  // namespace xenoscope::guests
