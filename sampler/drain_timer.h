// When a source looks into its buffers next: as often as was asked for, more often when they fill,
// less often when looking takes too much of the processor. It begins with short intervals, since
// nobody knows yet how fast they fill.
#pragma once

#include <chrono>

namespace xenoscope::sampler {

class DrainTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // `wanted`: from the end of one drain to the next.
  explicit DrainTimer(std::chrono::nanoseconds wanted) : requested_interval_(wanted) {}

  void Start(Clock::time_point now);
  // A drain took [begin, end) and found the fullest buffer filled to the part `fill` of its room,
  // in [0, 1], since the drain before.
  void Drained(Clock::time_point begin, Clock::time_point end, double fill);
  Clock::time_point due() const { return due_; }

 private:
  std::chrono::nanoseconds requested_interval_;
  Clock::time_point last_;                     // drain's begin
  std::chrono::nanoseconds safe_interval_{0};  // without too full a buffer, as far as is known
  std::chrono::nanoseconds mean_cost_{0};      // of a drain, on the average
  Clock::time_point due_;
};

}  // namespace xenoscope::sampler
