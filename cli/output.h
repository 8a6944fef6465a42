// Writes data to stdout or to a file. Text for a terminal, and all of stderr, is made safe for
// terminals first (report/terminal_text.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::cli {

// Writes all of `text`. Errors: those of writing, such as a full disk. A reader that has gone
// (`| head`) is not an error.
absl::Status WriteStdout(std::string_view text);
// Writes one of many blocks. Returns false when the reader has gone and more blocks are of no use.
absl::StatusOr<bool> WriteStdoutBlock(std::string_view block);

// Writes the file. Errors name it.
absl::Status WriteFile(const std::string& path, std::string_view text);
// Replaces the file at once: those who read it see all of the old or all of the new text. Errors
// name it.
absl::Status ReplaceFile(const std::string& path, std::string_view text);
// Writes to the file of `-o path`, or to standard output where `path` is empty.
absl::Status WriteOutput(const std::string& path, std::string_view text);

// Makes safe for terminals what this process writes to stderr from now on, by any function of the
// standard library. Child processes keep the stderr of before. To be called first.
void FilterStderr();
// Shows a line on the terminal of stderr and replaces the line before; an empty line removes it.
void ShowProgress(std::string_view line);

// Returns whether standard output is a terminal, to which only text may be written.
bool StdoutIsTerminal();

}  // namespace xenoscope::cli
