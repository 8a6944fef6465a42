// Who ran while a thread waited: in Xen, for a pCPU, and in its kernel, for a vCPU.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope::guests {

// A thread that ran while another one waited.
struct Culprit {
  static constexpr size_t kNoThread = ~size_t{0};

  DomainId domain;
  size_t thread = kNoThread;  // of the domain: an index; kNoThread: not known

  constexpr auto operator<=>(const Culprit&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Culprit& culprit) {
    return H::combine(std::move(h), culprit.domain, culprit.thread);
  }
};

// A thread's states in which it waits for a processor.
enum class WaitState : uint8_t { kStolen, kWoken, kPreempted };
inline constexpr size_t kWaitStates = 3;

// Which scheduler let the culprit run.
enum class Scheduler : uint8_t { kXen, kKernel };

struct Wait {
  size_t thread = 0;  // index
  WaitState state = WaitState::kStolen;
  Scheduler scheduler = Scheduler::kXen;
  Culprit by;
  Cycles time = 0;
};

// The times of waits by thread, state, scheduler and culprit.
class WaitSums {
 public:
  // Where there are kMaxSums, a culprit that is new is told apart by its domain only, and where
  // there are twice as many, not at all.
  void Add(const Wait& wait);
  // Returns the sums in the order of threads, states, schedulers and culprits. O(n log n).
  [[nodiscard]] std::vector<Wait> All() const;

  static constexpr size_t kMaxSums = size_t{1} << 20;

 private:
  using Key = std::tuple<size_t, WaitState, Scheduler, Culprit>;
  absl::flat_hash_map<Key, Cycles> sums_;
};

// What ran on one vCPU, and on its pCPU while it waited for that, while threads wait in the run
// queue of the vCPU's kernel.
class VcpuHistory {
 public:
  // A thread begins or ends to wait. Each Join has one Leave.
  void Join(Tsc at);
  void Leave();

  // Say who ran on the vCPU, that it waited for a pCPU, or that nothing is known, up to `until`,
  // from the end of what was said before.
  void Ran(Tsc until, Culprit by);
  void Waited(Tsc until);
  void Skip(Tsc until) { end_ = std::max(end_, until); }
  // Says who ran on the pCPU in the range, for the next Waited. Ranges come in order.
  void Stolen(TscRange range, Culprit by);

  // Calls visit(part, scheduler, culprit) for what is known of the range.
  template <typename Visitor>
  void ForEach(TscRange range, Visitor visit) const {
    const auto first = std::ranges::partition_point(
        entries_, [&range](const Entry& entry) { return entry.range.end <= range.begin; });
    for (auto entry = first; entry != entries_.end() && entry->range.begin < range.end; ++entry) {
      visit(entry->range.Intersect(range), entry->scheduler, entry->by);
    }
  }

  // The entries that are kept, the latest ones: of what was before them nothing is known.
  static constexpr size_t kMaxEntries = 4096;

 private:
  struct Entry {
    TscRange range;
    Scheduler scheduler = Scheduler::kKernel;
    Culprit by;
  };
  void Add(TscRange range, Scheduler scheduler, Culprit by);

  size_t waiting_ = 0;
  Tsc end_;  // of what was said
  std::deque<Entry> entries_;
  std::deque<Entry> stolen_;  // since the last Waited
};

}  // namespace xenoscope::guests
