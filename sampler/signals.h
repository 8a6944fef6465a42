// The signals that end a recording. They are handled only where the recording waits.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace xenoscope::sampler {

// While it lives, SIGINT, SIGTERM and SIGHUP are blocked, and SIGPIPE and SIGXFSZ are ignored
// (writes then fail with an error).
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals();

  // Sleeps until one of them has come, and returns it; nothing at `until`.
  [[nodiscard]] std::optional<int> WaitUntil(std::chrono::steady_clock::time_point until) const;

  // Returns a file that can be read when one of them has come, or `only` that one, to wait for it
  // along with other files; -1 when the kernel has none to give. The caller closes it.
  [[nodiscard]] int OpenFile(std::optional<int> only = {}) const;

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  struct sigaction size_before_ {};
};

}  // namespace xenoscope::sampler
