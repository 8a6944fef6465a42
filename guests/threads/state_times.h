// What a thread does, and the times for which it does so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "base/tsc.h"

namespace xenoscope::guests {

// The first six are of a thread that its kernel has put on a vCPU.
enum class ThreadState : uint8_t {
  kGuest,            // the vCPU runs, and executes the guest
  kXen,              // the vCPU runs, and executes Xen
  kStolen,           // the vCPU waits for a pCPU
  kHalted,           // the vCPU is blocked in Xen; of the idle thread: nothing is to be done
  kUntraced,         // Xen's trace does not say what the vCPU does
  kVcpuLost,         // records of Xen's trace were lost
  kWoken,            // in the guest's run queue since it was woken
  kPreempted,        // in the guest's run queue since another thread took its place
  kSleeping,         // waits for something, and a signal can wake it
  kUninterruptible,  // waits for something, such as a disk, and no signal wakes it
  kLost,             // events of the kernel were lost
};
inline constexpr size_t kThreadStates = 11;
[[nodiscard]] constexpr bool IsOnVcpu(ThreadState state) { return state <= ThreadState::kVcpuLost; }

using StateTimes = std::array<Cycles, kThreadStates>;  // by ThreadState
[[nodiscard]] inline Cycles Sum(const StateTimes& times) {
  return std::accumulate(times.begin(), times.end(), Cycles{0});
}
inline void AddTo(StateTimes& sum, const StateTimes& more) {
  for (size_t state = 0; state < sum.size(); ++state) sum[state] += more[state];
}
// Returns the times from `before` to `so_far`, which is not less.
[[nodiscard]] inline StateTimes Since(const StateTimes& before, const StateTimes& so_far) {
  StateTimes times{};
  for (size_t state = 0; state < times.size(); ++state)
    times[state] = so_far[state] - before[state];
  return times;
}

}  // namespace xenoscope::guests
