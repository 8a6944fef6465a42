// A map from a guest's TSC to the host's. The guest's TSC may be the host's with an offset (PVH and
// HVM guests), or run at another rate (emulated, or scaled after a migration), so the guest is
// asked:
//
//   host    --- before ------------------------ after --->
//                  \ ping                pong /
//   guest   ----------------- guest ----------------->
//
// guest - host at that moment then lies in [guest - after, guest - before].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/tsc.h"

namespace xenoscope::sampler {

class GuestClock {
 public:
  // `same_rate` says that the guest's TSC runs at the host's rate, so that one offset holds until
  // it jumps.
  explicit GuestClock(bool same_rate) : same_rate_(same_rate) {}

  // Adds an answer: the guest's TSC was `guest` at some instant in [before, after]. Calls are in
  // the order of time.
  void Add(Tsc before, uint64_t guest, Tsc after);

  // Returns the half-open range of the host's TSC in which the guest's TSC can have been `guest`.
  // With one offset, all answers since the last jump together make it narrow; else it reaches from
  // the question before to the answer after. Nothing: before the first remembered answer, or after
  // the last one of a clock with another rate.
  [[nodiscard]] std::optional<TscRange> ToHost(uint64_t guest) const;

  // Forgets all answers but the last kKeptAnswers; the bounds of the offset stay.
  void DropOldAnswers();
  static constexpr size_t kKeptAnswers = 16;

  // Returns the width of a range of one offset, in cycles; nothing without an answer or when rates
  // differ.
  [[nodiscard]] std::optional<Cycles> Error() const;
  // Returns how often an answer contradicted the earlier offset: the guest's clock was set, or the
  // guest was migrated or resumed.
  [[nodiscard]] uint64_t jumps() const { return jumps_; }

 private:
  struct Answer {
    Tsc before;
    uint64_t guest;
    Tsc after;
    uint64_t epoch;  // number of jumps before the answer
  };
  // Bounds of guest - host: [low, low + width], modulo 2^64.
  struct Offset {
    uint64_t low;
    uint64_t width;
  };

  static std::optional<Offset> Intersect(const Offset& a, const Offset& b);

  bool same_rate_;
  std::vector<Answer> answers_;
  std::vector<Offset> offsets_;  // offsets by epoch - first_epoch_
  uint64_t first_epoch_ = 0;
  uint64_t jumps_ = 0;
};

}  // namespace xenoscope::sampler
