// Bounds the rate at which pieces of stacks are written to the disk.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace xenoscope::sampler {

// A token bucket: over any stretch of time, at most `bytes_per_second` times that stretch, and the
// bytes of one second more, are spent. What was allowed is spent when its compressed size is known,
// so that one block may come on top.
class StackRate {
 public:
  using Clock = std::chrono::steady_clock;
  // Far above what 64 CPUs write at 1000 samples a second each, and below what disks take.
  static constexpr double kBytesPerSecond = 64 << 20;
  // The same for what the agent of a guest sends.
  static constexpr double kBytesPerSecondOfAgent = 8 << 20;

  explicit StackRate(double bytes_per_second = kBytesPerSecond)
      : bytes_per_second_(bytes_per_second), left_(bytes_per_second) {}

  // Adds what has become free since the last call; the first call begins the time.
  void Refill(Clock::time_point now) {
    if (last_ != Clock::time_point()) {
      const double seconds = std::chrono::duration<double>(now - last_).count();
      left_ = std::min(bytes_per_second_, left_ + seconds * bytes_per_second_);
    }
    last_ = now;
  }
  // Returns whether another piece may be written.
  [[nodiscard]] bool HasRoom() const { return left_ > 0; }
  void Spend(uint64_t bytes) { left_ -= static_cast<double>(bytes); }

 private:
  double bytes_per_second_;
  double left_;
  Clock::time_point last_;
};

}  // namespace xenoscope::sampler
