// The times of threads within a range: what a live view shows of a window.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/state_times.h"
#include "guests/threads/thread_observer.h"

namespace xenoscope::guests {

class TimesWithin final : public ThreadObserver {
 public:
  explicit TimesWithin(TscRange range) : range_(range) {}

  // O(1), amortised.
  void OnInterval(const ThreadInterval& interval) override;
  void OnWakeup(const ThreadWakeup& /*wakeup*/) override {}

  [[nodiscard]] TscRange range() const { return range_; }
  // Returns the times of the domain's thread, an index. Zero: it was in none that is known.
  [[nodiscard]] StateTimes Of(DomainId domain, size_t thread) const;

 private:
  TscRange range_;
  absl::flat_hash_map<DomainId, std::vector<StateTimes>> times_;  // by thread
};

}  // namespace xenoscope::guests
