// Signals that ask a recording to end, taken where the recording waits and nowhere else.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace xenoscope::sampler {

// Blocks SIGINT, SIGTERM and SIGHUP, and ignores SIGPIPE and SIGXFSZ (writes then fail with an
// error), while it lives.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals();

  // Sleeps until one of them has come, which it gives, or until `until`.
  std::optional<int> WaitUntil(std::chrono::steady_clock::time_point until) const;

  // A file that can be read when one of them has come, for those who wait for other files, too;
  // -1 when the kernel has none to give. The caller closes it.
  int OpenFile() const;

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  struct sigaction size_before_ {};
};

}  // namespace xenoscope::sampler
