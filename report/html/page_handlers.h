// The handlers of kernels' interrupts in the page's timeline: which of them ran on each vCPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_observer.h"
#include "report/html/interval_track.h"
#include "report/html/track_limit.h"

namespace xenoscope::report {

class PageHandlers {
 public:
  // Runs in the page; beyond it short ones are shown together.
  static constexpr size_t kMaxIntervals = 250'000;
  static constexpr size_t kMaxIntervalBytes = 600'000;

  // `shown` is the range of the page, whose begin is its time 0.
  explicit PageHandlers(TscRange shown) : shown_(shown) {}

  // Adds the run of a handler on one of the vCPUs that there are. Those of one vCPU come in the
  // order of their ends. O(log vCPUs).
  void Add(const guests::HandlerRun& run);

  // Returns the page's handlers (docs/schemas/page.schema.json), after the last run. Call it once.
  // Errors: Internal when libdeflate fails.
  absl::StatusOr<nlohmann::ordered_json> ToJson(const std::function<std::string(DomainId)>& label);

 private:
  struct Row {
    IntervalTrack track;  // codes: numbers in numbers_
    Tsc end;              // of what is in it
  };
  // The rows of a vCPU. What an interrupt left to do may be interrupted by another one.
  struct Vcpu {
    Row irqs;
    Row softirqs;
  };

  uint32_t NumberOf(const guests::InterruptKey& key);
  // Visits the tracks in the order of the page.
  void ForEachTrack(absl::FunctionRef<void(IntervalTrack&)> visit);

  TscRange shown_;
  std::map<VcpuRef, Vcpu> vcpus_;
  TrackLimit limit_{kMaxIntervals};
  absl::flat_hash_map<guests::InterruptKey, uint32_t> numbers_;  // in the order of coming
};

}  // namespace xenoscope::report
