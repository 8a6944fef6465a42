// Counters of Linux's perf events that count and take no samples, as `perf stat` has them: of a
// command and all processes that it starts, or of every CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_calls.h"
#include "sampler/perf/perf_events.h"

namespace xenoscope::sampler {

// What counters count.
enum class CounterScope : uint8_t {
  kChildren,  // programs that this thread starts from then on, from their exec, with their children
  kCpus,      // every CPU of this Linux, of all processes
};

// A counter's event.
struct CountedEvent {
  PerfEvent event;
  // Why this machine cannot count it; empty: it is counted.
  std::string obstacle;
  // Whether the user may count user mode alone, so that this is what is counted.
  bool user_only = false;
};

// A reading of a counter.
struct CounterReading {
  size_t event = 0;             // index into PerfCounters::events
  std::optional<uint32_t> cpu;  // the CPU; not set for kChildren
  uint64_t count = 0;
  // The time that the event was to be counted, and the time that it was. They differ if events took
  // turns, because there are fewer counters (multiplexing). In ns.
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  bool operator==(const CounterReading&) const = default;
};

class PerfCounters {
 public:
  // Opens counters of the events. A group is counted at the same time. An event that this machine
  // cannot count has an obstacle; one that does not exist is an error (NotFound). Errors:
  // PermissionDenied; InvalidArgument for modes that a PV domain's counters cannot tell apart;
  // those of PerfError.
  static absl::StatusOr<PerfCounters> Open(std::span<const EventSpec> events, CounterScope scope,
                                           std::unique_ptr<PerfCalls> calls);
  PerfCounters(PerfCounters&&) noexcept = default;
  PerfCounters& operator=(PerfCounters&&) = delete;
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;
  ~PerfCounters();

  [[nodiscard]] const std::vector<CountedEvent>& events() const { return events_; }
  // Begins and ends counting on CPUs. A command's counters begin with it.
  absl::Status Enable(bool on);
  // Returns the counts up to now, in the order of events and CPUs. O(events * CPUs).
  [[nodiscard]] absl::StatusOr<std::vector<CounterReading>> Read();

 private:
  struct Counter {
    size_t event = 0;
    std::optional<uint32_t> cpu;
    int fd = -1;
  };

  PerfCounters(CounterScope scope, std::unique_ptr<PerfCalls> calls)
      : scope_(scope), calls_(std::move(calls)) {}

  absl::Status OpenEvent(std::span<const EventSpec> specs, size_t event,
                         std::optional<uint32_t> cpu);
  // Opens the counter; -errno when it fails.
  int OpenCounter(size_t event, std::optional<uint32_t> cpu, int leader);
  // Returns the file of the counter, or PerfCalls::kNoLeader.
  [[nodiscard]] int FileOf(size_t event, std::optional<uint32_t> cpu) const;
  // Forgets the event, which this machine cannot count.
  void Drop(size_t event, std::string why);

  CounterScope scope_;
  std::unique_ptr<PerfCalls> calls_;
  std::vector<CountedEvent> events_;
  std::vector<Counter> counters_;
};

}  // namespace xenoscope::sampler
