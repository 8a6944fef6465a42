#include "sampler/ftrace/function_patterns.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "base/error.h"

namespace xenoscope::sampler {
namespace {

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool IsFunctionPattern(std::string_view text) {
  return text.size() <= kMaxFunctionPatternBytes && std::ranges::all_of(text, [](char c) {
           return IsWordCharacter(c) || c == '.' || c == '*';
         });
}

}  // namespace

absl::Status CheckFunctionPatterns(const std::vector<std::string>& patterns) {
  if (patterns.size() > kMaxFunctionPatterns) {
    return InvalidError("{} patterns of functions are too many, the limit is {}", patterns.size(),
                        kMaxFunctionPatterns);
  }
  for (const std::string& pattern : patterns) {
    if (!IsFunctionPattern(pattern)) {
      return InvalidError(
          "'{}' is no pattern of functions: write letters, digits, '_' and '.', and '*' for any of "
          "these, at most {} of them, as in 'acpi_*'",
          pattern.substr(0, kMaxFunctionPatternBytes), kMaxFunctionPatternBytes);
    }
    if (std::ranges::none_of(pattern, IsWordCharacter)) {
      return InvalidError(
          "'{}' would trace all functions of the kernel, which then hardly does anything else: "
          "name some",
          pattern);
    }
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
