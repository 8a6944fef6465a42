// The waits of threads for locks of their kernel: how many, how long, what the threads did
// meanwhile, and whether another vCPU of the domain was kept from running, on which the lock may
// have been held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"
#include "guests/threads/state_times.h"

namespace xenoscope::guests {

struct LockWait {
  size_t thread = 0;    // index
  uint64_t lock = 0;    // address in the guest's kernel
  uint32_t flags = 0;   // as the wait began (include/trace/events/lock.h), or kUnknownLock
  uint64_t waits = 0;   // that began and ended
  uint64_t failed = 0;  // of them, those after which the thread did not have the lock
  // Waits of which only the begin or only the end is known; they have no time.
  uint64_t cut = 0;
  StateTimes times{};  // what the thread did during `waits`
  Cycles longest = 0;  // of one of them
  // The part of their time in which another thread was on a vCPU that waited for a pCPU.
  Cycles others_stolen = 0;
};

// Flags of a wait of which only the end is known, or for which there was no room.
inline constexpr uint32_t kUnknownLock = ~uint32_t{0};

class LockWaits {
 public:
  // The thread begins to wait for the lock, or ends to, at `at`, when its times are `so_far`. A
  // thread that waits for it already goes on to wait (a mutex is first spun for, then slept for).
  // `losses`: of events up to then; a wait during which there was one is cut. `result`: 0: it has
  // the lock. End: O(vCPUs that waited for a pCPU meanwhile).
  void Begin(size_t thread, uint64_t lock, uint32_t flags, uint64_t losses, Tsc at,
             const StateTimes& so_far);
  void End(size_t thread, uint64_t lock, uint64_t result, uint64_t losses, Tsc at,
           const StateTimes& so_far);
  // While this thread was on a vCPU, that waited for a pCPU. Ranges come in the order of their
  // ends.
  void Stolen(size_t thread, TscRange range);
  // Cuts the waits that have not ended.
  void Finish();
  // Returns the sums in the order of threads, locks and flags. O(n log n).
  [[nodiscard]] std::vector<LockWait> All() const;

  // Where there are this many sums, locks that are new are one without an address.
  static constexpr size_t kMaxSums = size_t{1} << 18;
  // Waits of one thread within each other: in interrupts, for example. Those within are cut.
  static constexpr size_t kMaxDepth = 8;
  // The latest ranges of Stolen that are kept.
  static constexpr size_t kMaxStolen = 4096;

 private:
  struct OpenWait {
    uint64_t lock = 0;
    uint32_t flags = 0;
    uint64_t losses = 0;
    Tsc begin;
    StateTimes before{};
  };
  struct StolenRange {
    TscRange range;
    size_t thread = 0;
  };
  using Key = std::tuple<size_t, uint64_t, uint32_t>;
  LockWait& SumOf(size_t thread, uint64_t lock, uint32_t flags);
  // Returns the time in the range in which a vCPU with another thread waited for a pCPU.
  Cycles StolenOfOthers(size_t thread, TscRange range);
  void Close(std::vector<OpenWait>& open, size_t thread, size_t from);

  absl::flat_hash_map<size_t, std::vector<OpenWait>> open_;  // by thread, the innermost last
  size_t open_waits_ = 0;
  std::deque<StolenRange> stolen_;  // while a thread waits
  std::vector<TscRange> parts_;     // a member only to reuse its memory
  absl::flat_hash_map<Key, LockWait> sums_;
};

}  // namespace xenoscope::guests
