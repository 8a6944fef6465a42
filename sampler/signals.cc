#include "sampler/signals.h"

#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace xenoscope::sampler {

EndSignals::EndSignals() {
  sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, number);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
  sigaction(SIGXFSZ, &ignore, &size_before_);
}

EndSignals::~EndSignals() {
  sigaction(SIGXFSZ, &size_before_, nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> EndSignals::WaitUntil(std::chrono::steady_clock::time_point until) const {
  using std::chrono::nanoseconds;
  while (true) {
    const nanoseconds left =
        std::max(nanoseconds(0), nanoseconds(until - std::chrono::steady_clock::now()));
    constexpr int64_t kNsInSecond = 1'000'000'000;
    const timespec timeout{left.count() / kNsInSecond, left.count() % kNsInSecond};
    const int number = sigtimedwait(&set_, nullptr, &timeout);
    if (number > 0) return number;
    if (errno != EINTR) return std::nullopt;
  }
}

int EndSignals::OpenFile(std::optional<int> only) const {
  sigset_t set = set_;
  if (only) {
    sigemptyset(&set);
    sigaddset(&set, *only);
  }
  return signalfd(-1, &set, SFD_CLOEXEC);
}

}  // namespace xenoscope::sampler
