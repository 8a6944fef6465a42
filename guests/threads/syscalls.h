// The system calls of threads: how often, for how long, and what the threads did meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"
#include "guests/threads/state_times.h"

namespace xenoscope::guests {

struct Syscall {
  size_t thread = 0;    // index
  uint64_t number = 0;  // the kernel's, or kOtherSyscalls
  uint64_t calls = 0;   // that began and returned
  uint64_t errors = 0;  // of them, those that returned one
  // Calls of which only the begin or only the return is known; they have no time. A new thread
  // returns from the call that made it.
  uint64_t cut = 0;
  StateTimes times{};  // what the thread did during `calls`
  Cycles longest = 0;  // of one of them
};

// No kernel's number: of calls for which there was no room.
inline constexpr uint64_t kOtherSyscalls = uint64_t{1} << 63;

class Syscalls {
 public:
  // The thread's call begins, or returns, at `at`, when its times are `so_far`. `losses`: of events
  // up to then; a call during which there was one is cut. O(1) amortised.
  void Enter(size_t thread, uint64_t number, uint64_t losses, Tsc at, const StateTimes& so_far);
  void Return(size_t thread, uint64_t number, uint64_t result, uint64_t losses, Tsc at,
              const StateTimes& so_far);
  // Cuts the calls that have not returned.
  void Finish();
  // Returns the sums in the order of threads and numbers. O(n log n).
  [[nodiscard]] std::vector<Syscall> All() const;

  // Where there are this many sums, numbers that are new to a thread are kOtherSyscalls.
  static constexpr size_t kMaxSums = size_t{1} << 18;

 private:
  struct OpenCall {
    uint64_t number = 0;
    uint64_t losses = 0;
    Tsc begin;
    StateTimes before{};
  };
  Syscall& SumOf(size_t thread, uint64_t number);

  absl::flat_hash_map<size_t, OpenCall> open_;  // by thread
  absl::flat_hash_map<std::pair<size_t, uint64_t>, Syscall> sums_;
};

}  // namespace xenoscope::guests
