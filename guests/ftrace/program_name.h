// Names of programs as a kernel's events have them: the paths that were executed.
#pragma once

#include <string_view>

namespace xenoscope::guests {

// Returns the last part of a path.
[[nodiscard]] constexpr std::string_view ProgramName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Whether the path is that of the program `name`, a path or the last part of one.
[[nodiscard]] constexpr bool IsProgram(std::string_view path, std::string_view name) {
  return path == name || ProgramName(path) == name;
}

}  // namespace xenoscope::guests
