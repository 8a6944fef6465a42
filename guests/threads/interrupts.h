// The handlers of interrupts that ran on a domain's vCPUs: how often, for how long, and what Xen
// did with the vCPU meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"
#include "guests/threads/state_times.h"

namespace xenoscope::guests {

// What a handler is of.
struct InterruptKey {
  bool is_soft = false;  // what an interrupt left to do (softirq)
  uint64_t number = 0;   // of the interrupt; of a softirq: its vector
  std::string name;      // of the handler; of a softirq: empty

  bool operator==(const InterruptKey&) const = default;
  auto operator<=>(const InterruptKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const InterruptKey& key) {
    return H::combine(std::move(h), key.is_soft, key.number, key.name);
  }
};

// Returns the name of the handler; of a softirq: what its vector is for ("NET_RX"), empty if that
// is not known.
[[nodiscard]] std::string_view HandlerName(const InterruptKey& key);

struct Interrupt {
  InterruptKey key;
  uint64_t runs = 0;  // that began and ended
  // Runs of which only the begin or only the end is known; they have no time.
  uint64_t cut = 0;
  // What the vCPU did during `runs`, without handlers that interrupted them.
  StateTimes times{};
  Cycles longest = 0;  // of one of them
};

class Interrupts {
 public:
  explicit Interrupts(size_t cpus) : open_(cpus) {}

  // What is known when a handler begins or ends.
  struct Now {
    Tsc at;
    uint64_t losses = 0;       // of events up to then; runs during which there was one are cut
    const StateTimes& so_far;  // the CPU's times
  };
  // A run that was not cut.
  struct Ended {
    const InterruptKey& key;  // until the next call
    TscRange range;
  };
  // A handler begins on the CPU, or ends: returns its run. O(1) amortised.
  void Begin(size_t cpu, InterruptKey key, const Now& now);
  std::optional<Ended> End(size_t cpu, bool is_soft, uint64_t number, const Now& now);
  // No handler runs on the CPU, whatever events before said.
  void Reset(size_t cpu);
  // Returns the sums in the order of their keys. O(n log n).
  [[nodiscard]] std::vector<Interrupt> All() const;

  // Handlers that are told apart; the others are one without a name.
  static constexpr size_t kMaxSums = size_t{1} << 14;
  // Handlers of one CPU that interrupt each other; those within are cut.
  static constexpr size_t kMaxDepth = 8;

 private:
  struct Run {
    InterruptKey key;
    Tsc begin;
    uint64_t losses = 0;
    StateTimes before{};
    StateTimes inner{};  // of the handlers that interrupted it
  };
  Interrupt& SumOf(InterruptKey key);

  std::vector<std::vector<Run>> open_;  // by CPU, the innermost last
  absl::flat_hash_map<InterruptKey, Interrupt> sums_;
};

}  // namespace xenoscope::guests
