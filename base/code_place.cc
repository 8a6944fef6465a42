#include "base/code_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace xenoscope {
namespace {

constexpr std::string_view kPlus = "+0x";
constexpr size_t kMaxBuildId = 128;  // hexadecimal digits
constexpr int kHex = 16;

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

std::string ToString(const CodePlace& place) {
  return fmt::format("[{}{}{:x}]", place.build_id, kPlus, place.offset);
}

std::optional<CodePlace> ParseCodePlace(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  const size_t plus = text.find(kPlus);
  if (plus == std::string_view::npos || plus == 0 || plus > kMaxBuildId) return std::nullopt;
  CodePlace place{std::string(text.substr(0, plus))};
  if (!std::ranges::all_of(place.build_id, IsHexDigit)) return std::nullopt;
  const std::string_view digits = text.substr(plus + kPlus.size());
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, place.offset, kHex);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return place;
}

}  // namespace xenoscope
