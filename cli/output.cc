#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace xenoscope::cli {

absl::Status WriteStdout(std::string_view text) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return ErrnoError(errno, "cannot write to standard output");
    }
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::cli
