// Totals of `xenoscope stat` that guests have: their agents read counters of the guests' kernels.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/event_totals.h"
#include "recording/info.h"
#include "sampler/agent/guest_counters.h"

namespace xenoscope::cli {

// The counters of the guests whose agents answer. A guest whose agent fails is not counted from
// then on, with a note on stderr.
class StatGuests {
 public:
  // Connects to the agents of `guests`, domains of `host` by name or number, which are to count
  // `events` events: `texts` as after -e. Errors: there is no such domain; an agent does not
  // answer.
  static absl::StatusOr<StatGuests> Open(const std::vector<std::string>& guests,
                                         const recording::RecordingInfo& host,
                                         const std::vector<std::string>& texts, size_t events);

  // Begins to count, from 0.
  void Start();
  // Returns what was counted since the last call, or since Start.
  std::vector<profile::CountedPart> Next();
  // Lets the agents know, once a minute, that this program is still there.
  void KeepAlive();

 private:
  struct Guest {
    sampler::GuestCounters counters;
    bool failed = false;
  };

  explicit StatGuests(size_t events) : events_(events) {}

  size_t events_;
  std::vector<Guest> guests_;
  std::chrono::steady_clock::time_point last_call_;  // when all agents were asked last
};

}  // namespace xenoscope::cli
