// Data goes to stdout or to a file, whole or with an error that says why not. What goes to a
// terminal, or to stderr, is made safe for terminals first (report/terminal_text.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::cli {

// Errors: disk full and the like. A reader that has gone (`| head`) is none.
absl::Status WriteStdout(std::string_view text);
// One of many pieces: false when the reader has gone, so that there is no use in making more.
absl::StatusOr<bool> WriteStdoutBlock(std::string_view block);

// Errors name the file.
absl::Status WriteFile(const std::string& path, std::string_view text);
// What `-o path` asks for: standard output where `path` is empty.
absl::Status WriteOutput(const std::string& path, std::string_view text);

// Makes safe what this process writes to stderr from now on, by whatever of the standard library.
// Processes that it starts have the stderr that was there. Call it before all else.
void FilterStderr();
// One line on the terminal that stderr is, in the place of the line before; an empty one leaves
// none.
void ShowProgress(std::string_view line);

// Whether standard output is a terminal, where bytes that are no text would do harm.
bool StdoutIsTerminal();

}  // namespace xenoscope::cli
