// A limit of the work that a file may cause. An honest file takes a step for each few bytes; a
// hostile one, whose parts refer to each other so that they are read again and again, reaches the
// limit.
#pragma once

#include <atomic>
#include <cstdint>

namespace xenoscope::symbolizer {

class WorkLimit {
 public:
  explicit WorkLimit(uint64_t steps) : left_(static_cast<int64_t>(steps)) {}

  // Takes that many steps; false when fewer are left, and from then on. Thread-safe.
  bool Take(uint64_t steps = 1) {
    return left_.fetch_sub(static_cast<int64_t>(steps), std::memory_order_relaxed) >=
           static_cast<int64_t>(steps);
  }
  // Adds steps, as another file is read.
  void Give(uint64_t steps) {
    if (!exhausted()) left_.fetch_add(static_cast<int64_t>(steps), std::memory_order_relaxed);
  }
  [[nodiscard]] bool exhausted() const { return left_.load(std::memory_order_relaxed) < 0; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace xenoscope::symbolizer
