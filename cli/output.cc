#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "report/terminal_text.h"

namespace xenoscope::cli {
namespace {

// Errors are ignored: there is no other place to report them.
void WriteWhole(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

ssize_t WriteToStderr(void* /*cookie*/, const char* text, size_t size) {
  WriteWhole(report::ForTerminal({text, size}));
  return static_cast<ssize_t>(size);
}

}  // namespace

absl::Status WriteStdout(std::string_view text) { return WriteStdoutBlock(text).status(); }

absl::StatusOr<bool> WriteStdoutBlock(std::string_view block) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  std::string safe;
  if (StdoutIsTerminal()) {
    safe = report::ForTerminal(block);
    block = safe;
  }
  while (!block.empty()) {
    const ssize_t written = write(STDOUT_FILENO, block.data(), block.size());
    if (written >= 0) {
      block.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno != EINTR) {
      return ErrnoError(errno, "cannot write to standard output");
    }
  }
  return true;
}

void FilterStderr() {
  cookie_io_functions_t functions{};
  functions.write = WriteToStderr;
  FILE* const filtered = fopencookie(nullptr, "w", functions);
  if (filtered == nullptr) return;  // no memory
  (void)std::setvbuf(filtered, nullptr, _IOLBF, BUFSIZ);
  stderr = filtered;
}

void ShowProgress(std::string_view line) {
  constexpr std::string_view kEraseLine = "\r\x1b[K";
  WriteWhole(fmt::format("{}{}", kEraseLine, report::ForTerminal(line)));
}

absl::Status WriteFile(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(errno, "cannot write {}", path);
}

absl::Status ReplaceFile(const std::string& path, std::string_view text) {
  // Beside it, with a name that programs that collect files of its ending do not read.
  const std::string unfinished = fmt::format("{}.{}.tmp", path, getpid());
  absl::Status status = WriteFile(unfinished, text);
  if (status.ok() && std::rename(unfinished.c_str(), path.c_str()) != 0) {
    status = ErrnoError(errno, "cannot write {}", path);
  }
  if (!status.ok()) (void)unlink(unfinished.c_str());
  return status;
}

absl::Status WriteOutput(const std::string& path, std::string_view text) {
  return path.empty() ? WriteStdout(text) : WriteFile(path, text);
}

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) != 0; }

}  // namespace xenoscope::cli
