#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "base/error.h"

namespace xenoscope::cli {

absl::Status WriteStdout(std::string_view text) { return WriteStdoutPiece(text).status(); }

absl::StatusOr<bool> WriteStdoutPiece(std::string_view piece) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  while (!piece.empty()) {
    const ssize_t written = write(STDOUT_FILENO, piece.data(), piece.size());
    if (written >= 0) {
      piece.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno != EINTR) {
      return ErrnoError(errno, "cannot write to standard output");
    }
  }
  return true;
}

absl::Status WriteFile(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(errno, "cannot write {}", path);
}

absl::Status WriteOutput(const std::string& path, std::string_view text) {
  return path.empty() ? WriteStdout(text) : WriteFile(path, text);
}

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) != 0; }

}  // namespace xenoscope::cli
