#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

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

}  // namespace xenoscope::cli
