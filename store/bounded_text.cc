#include "store/bounded_text.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "base/crc.h"

namespace xenoscope::store {

std::string BoundedName(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kMaxName)) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (name.size() <= kMaxName && text.size() <= kMaxName) return text;
  const std::string end = fmt::format("...#{:08x}", Crc32(std::as_bytes(std::span(name))));
  text.resize(kMaxName - end.size());
  return text + end;
}

}  // namespace xenoscope::store
