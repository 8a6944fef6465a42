#include "trace/event_mask.h"

#include <charconv>

namespace xenoscope::trace {
namespace {

// Returns the mask of a class by its name, with all its subclasses.
std::optional<EventMask> ClassMask(std::string_view name) {
  for (uint32_t bit = 0x10000; (bit & EventMask::kClassBits) != 0; bit <<= 1) {
    const TraceClass trace_class = ClassOf(bit | EventMask::kSubclassBits);
    if (trace_class != TraceClass::kUnknown && ToString(trace_class) == name) {
      return EventMask{bit | EventMask::kSubclassBits};
    }
  }
  return std::nullopt;
}

// Returns a number in C's notation: hexadecimal after 0x, octal after 0, else decimal.
std::optional<EventMask> NumberMask(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8;
  }
  EventMask mask;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, mask.value, base);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return mask;
}

std::optional<EventMask> ParseOne(std::string_view text) {
  for (const NamedMask& preset : kMaskPresets) {
    if (preset.name == text) return preset.mask;
  }
  const std::optional<EventMask> of_class = ClassMask(text);
  return of_class ? of_class : NumberMask(text);
}

}  // namespace

std::optional<EventMask> ParseEventMask(std::string_view text) {
  EventMask mask;
  while (true) {
    const size_t comma = text.find(',');
    const std::optional<EventMask> one = ParseOne(text.substr(0, comma));
    if (!one) return std::nullopt;
    mask.value |= one->value;
    if (comma == std::string_view::npos) return mask;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace xenoscope::trace
