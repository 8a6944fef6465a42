// How much work a file may cause. What is honest takes a step for each few bytes of the file; a
// hostile one, whose parts refer to each other so that they are read again and again, runs out.
#pragma once

#include <atomic>
#include <cstdint>

namespace xenoscope::symbolizer {

class WorkLimit {
 public:
  explicit WorkLimit(uint64_t steps) : left_(static_cast<int64_t>(steps)) {}

  // False when no such number of steps is left; then nothing is, any more. Thread-safe.
  bool Take(uint64_t steps = 1) {
    return left_.fetch_sub(static_cast<int64_t>(steps), std::memory_order_relaxed) >=
           static_cast<int64_t>(steps);
  }
  // More is allowed: another file is read.
  void Give(uint64_t steps) {
    if (!exhausted()) left_.fetch_add(static_cast<int64_t>(steps), std::memory_order_relaxed);
  }
  bool exhausted() const { return left_.load(std::memory_order_relaxed) < 0; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace xenoscope::symbolizer
