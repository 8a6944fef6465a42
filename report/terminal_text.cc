#include "report/terminal_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <random>

#include "report/markup.h"

namespace xenoscope::report {
namespace {

// Returns the beginning of every mark. Parameters and 'm' follow it.
const std::string& Key() {
  static const std::string key = [] {
    std::random_device random;
    return fmt::format("\x1b{:08x}{:08x}", random(), random());
  }();
  return key;
}

std::string Mark(std::string_view rendition) { return fmt::format("{}{}m", Key(), rendition); }

}  // namespace

std::string Styled(std::string_view text, std::string_view rendition) {
  constexpr std::string_view kNone = "0";
  return fmt::format("{}{}{}", Mark(rendition), text, Mark(kNone));
}

std::string ForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.starts_with(Key())) {
      text.remove_prefix(Key().size());
      out += "\x1b[";
      continue;  // the parameters and 'm' follow unchanged
    }
    const bool is_layout = text.front() == '\n' || text.front() == '\t';
    const size_t size = is_layout ? 1 : PrintableAt(text, 0);
    out += size > 0 ? text.substr(0, size) : "?";
    text.remove_prefix(size > 0 ? size : 1);
  }
  return out;
}

}  // namespace xenoscope::report
