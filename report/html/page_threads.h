// The threads of dom0 and of guests in the page's timeline: which thread each vCPU ran, by the
// events of its kernel, what each thread did meanwhile, and which handlers of interrupts ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_observer.h"
#include "guests/threads/thread_states.h"
#include "report/html/interval_track.h"
#include "report/html/page_handlers.h"
#include "report/html/track_limit.h"

namespace xenoscope::report {

class PageThreads final : public guests::ThreadObserver {
 public:
  // Intervals in the page; beyond it short ones are shown together.
  static constexpr size_t kMaxIntervals = 500'000;
  static constexpr size_t kMaxIntervalBytes = 1'200'000;
  // Threads in the page: those that were on vCPUs longest.
  static constexpr size_t kMaxThreads = 2000;

  // `domains`, which outlive this, are about to follow their events. `shown` is the range of the
  // page, whose begin is its time 0.
  PageThreads(std::span<const guests::ThreadStates> domains, TscRange shown)
      : shown_(shown), handlers_(shown), domains_(domains.size()) {
    for (size_t i = 0; i < domains.size(); ++i) domains_[i].states = &domains[i];
  }

  void OnInterval(const guests::ThreadInterval& interval) override;
  void OnWakeup(const guests::ThreadWakeup& /*wakeup*/) override {}
  void OnHandler(const guests::HandlerRun& run) override;

  // Returns the page's threads (docs/schemas/page.schema.json), after the last event. Call it once.
  // Errors: Internal when libdeflate fails.
  absl::StatusOr<nlohmann::ordered_json> ToJson(const std::function<std::string(DomainId)>& label);

 private:
  // A row of the page, and its last interval, which may go on.
  struct Row {
    IntervalTrack track;
    TscRange open;
    uint32_t code = 0;
    TrackPart part = TrackPart::kNone;
    Cycles on_vcpus = 0;  // of a thread: the time for which it was on vCPUs in what is shown
  };
  struct Domain {
    const guests::ThreadStates* states = nullptr;
    std::vector<Row> threads;  // codes: ThreadState
    std::vector<Row> vcpus;    // codes: numbers of threads, in the order in which they ran first
  };
  struct ThreadRef {
    size_t domain = 0;
    size_t thread = 0;
  };

  // Returns what is kept of the domain; null: it is none of the page's.
  [[nodiscard]] Domain* Find(DomainId domain);
  void Put(Row& row, uint32_t code, TrackPart part, TscRange range);
  // Adds what is open to the row's track.
  void Close(Row& row);
  // Returns the threads that were on vCPUs, the longest first.
  [[nodiscard]] std::vector<ThreadRef> OnVcpus() const;

  TscRange shown_;
  PageHandlers handlers_;
  std::vector<Domain> domains_;
  TrackLimit limit_{kMaxIntervals};
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;  // by domain and thread
};

}  // namespace xenoscope::report
