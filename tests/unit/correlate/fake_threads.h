// Threads that tests say.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "correlate/thread_source.h"

namespace xenoscope::correlate {

// Each thread n is a process of its own, with the pid 100 + n, and the threads 2 n - 1 and 2 n are
// of the container n.
class FakeThreads final : public ThreadSource {
 public:
  explicit FakeThreads(std::vector<ThreadSwitch> switches = {}) : switches_(std::move(switches)) {}
  std::optional<ThreadSwitch> Next(Tsc until) override {
    if (next_ == switches_.size() || switches_[next_].at >= until) return std::nullopt;
    return switches_[next_++];
  }
  [[nodiscard]] ThreadIdentity IdentityOf(uint32_t thread) const override {
    return {thread, thread, (thread + 1) / 2, thread == 0 ? 0 : 100 + thread};
  }
  [[nodiscard]] std::string ThreadName(uint32_t thread) const override {
    return fmt::format("t{}", thread);
  }
  [[nodiscard]] std::string ProcessName(uint32_t process) const override {
    return fmt::format("p{}", process);
  }
  [[nodiscard]] std::string ContainerName(uint32_t container) const override {
    return fmt::format("c{}", container);
  }

 private:
  std::vector<ThreadSwitch> switches_;
  size_t next_ = 0;
};

}  // namespace xenoscope::correlate
