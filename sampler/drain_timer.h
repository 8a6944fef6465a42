// The timer of a source's drains: at the requested interval, more often when buffers fill up, less
// often when draining takes too much processor time. It begins with short intervals, as the rate at
// which the buffers fill is not known yet.
#pragma once

#include <chrono>

namespace xenoscope::sampler {

class DrainTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // `wanted` is the time from the end of one drain to the next.
  explicit DrainTimer(std::chrono::nanoseconds wanted) : requested_interval_(wanted) {}

  void Start(Clock::time_point now);
  // Notes that a drain took [begin, end), and found the fullest buffer to use the part `fill`, in
  // [0, 1], of its room.
  void Drained(Clock::time_point begin, Clock::time_point end, double fill);
  [[nodiscard]] Clock::time_point due() const { return due_; }

 private:
  std::chrono::nanoseconds requested_interval_;
  Clock::time_point last_;  // begin of the last drain
  // Interval at which no buffer becomes too full, as far as is known.
  std::chrono::nanoseconds safe_interval_{0};
  std::chrono::nanoseconds mean_cost_{0};  // mean time of a drain
  Clock::time_point due_;
};

}  // namespace xenoscope::sampler
