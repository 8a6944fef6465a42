#include "report/markup.h"

#include <cstdint>

namespace xenoscope::report {
namespace {

// Whether the character is one of Unicode's Bidi_Control characters (PropList.txt): embeddings,
// overrides, isolates, marks.
constexpr bool IsBidiControl(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

// The ranges are those of RFC 3629, section 4. XML (1.0, section 2.2) excludes or discourages the
// last two characters of each plane.
size_t PrintableAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[at + k]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < size) return 0;
  uint32_t code = first & (0xffU >> (size + 1));
  for (size_t k = 1; k < size; ++k) {
    if ((byte(k) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(k) & 0x3fU);
  }
  // U+0080 to U+009F are control characters
  constexpr uint32_t kMin[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kMin[size] || code > 0x10ffff || surrogate || (code & 0xfffe) == 0xfffe) return 0;
  return IsBidiControl(code) ? 0 : size;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t size = PrintableAt(text, i);
    if (size == 0) {
      out += '?';
    } else {
      out += text.substr(i, size);
    }
    i += size == 0 ? 1 : size;
  }
  return out;
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace xenoscope::report
