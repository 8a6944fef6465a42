// The critical path of a thread: what it, or the threads for which it waited, did in a range of
// time. While the thread sleeps, the path is that of the thread that woke it in the end, and so on
// (Giraldeau and Dagenais, "Wait analysis of distributed systems using kernel tracing", 2016).
// Where an event of another domain woke it, the path goes on with the thread that sent the event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/culprits.h"
#include "guests/threads/thread_observer.h"
#include "guests/threads/thread_states.h"

namespace xenoscope::guests {

// What the thread that is waited for does in a part of the path.
struct PathStep {
  Culprit of;  // without a thread: nothing is known of what the domain did
  TscRange range;
  ThreadState state = ThreadState::kLost;
  uint32_t depth = 0;  // of waits: 0 is the thread itself
};

// Keeps what domains' threads do in a range, and finds paths in it.
class PathFinder final : public ThreadObserver {
 public:
  explicit PathFinder(TscRange range) : range_(range) {}

  void OnInterval(const ThreadInterval& interval) override;
  void OnWakeup(const ThreadWakeup& wakeup) override;

  // Returns the path of the thread: contiguous steps, in the order of time, that are all of the
  // range. A thread sleeps in a step if an interrupt woke it, or nothing is known of who did.
  // Errors: ResourceExhausted: there is more than kMaxIntervals in the range. O(result log n).
  [[nodiscard]] absl::StatusOr<std::vector<PathStep>> Find(Culprit thread) const;

  static constexpr size_t kMaxIntervals = size_t{1} << 21;
  // Waits of which one is part of another; a deeper one is a step.
  static constexpr uint32_t kMaxDepth = 64;

 private:
  struct Interval {
    TscRange range;
    ThreadState state = ThreadState::kLost;
  };
  struct Wakeup {
    Tsc at;
    size_t waker = 0;
    bool by_interrupt = false;
    std::optional<EventSender> sender;
  };
  struct Thread {
    std::vector<Interval> intervals;  // in the order of time, apart
    std::vector<Wakeup> wakeups;      // in the order of time
  };
  struct Task;  // a part of the path that has to be found yet

  Thread& At(DomainId domain, size_t thread);
  // Returns what is known of the thread, or null.
  [[nodiscard]] const Thread* Known(Culprit thread) const;
  // Puts what the thread waited for in this part of a sleep, which ends with a wake-up by another
  // thread. False: no other thread is known.
  bool FollowWaker(const Task& task, const Thread& thread, TscRange part,
                   std::vector<Task>& tasks) const;

  TscRange range_;
  absl::flat_hash_map<DomainId, std::vector<Thread>> domains_;
  size_t kept_ = 0;
  bool is_full_ = false;
};

}  // namespace xenoscope::guests
