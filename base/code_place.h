// A place in a program's file, as the name of code whose function is not known yet:
// "[8f3a...+0x1234]", the file's build-id or content id, and the byte of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xenoscope {

struct CodePlace {
  std::string build_id;  // hexadecimal
  uint64_t offset = 0;

  bool operator==(const CodePlace&) const = default;
};

[[nodiscard]] std::string ToString(const CodePlace& place);
// Returns nothing for a text that is no place. O(length).
[[nodiscard]] std::optional<CodePlace> ParseCodePlace(std::string_view text);

}  // namespace xenoscope
