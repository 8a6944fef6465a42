// The host's instants of a guest's TSC. The guest's TSC may be the host's with an offset (PVH and
// HVM guests), or run at a rate of its own (emulated, or scaled after a migration), so it is asked:
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
  // `same_rate`: the guest's TSC runs at the host's rate, so that one offset holds until it jumps.
  explicit GuestClock(bool same_rate) : same_rate_(same_rate) {}

  // The guest's TSC was `guest` somewhere in [before, after]. Later calls are of later instants.
  void Add(Tsc before, uint64_t guest, Tsc after);

  // The half-open bracket of the host's instants at which the guest's TSC can have been `guest`.
  // From one offset, all answers since the last jump together make it narrow; else it reaches from
  // the question before to the answer after. Nothing: before the first answer that is remembered,
  // or after the last one of a clock of another rate.
  std::optional<TscRange> ToHost(uint64_t guest) const;

  // Forgets all answers but the last kKeptAnswers; what the others say of the offset is kept.
  void DropOldAnswers();
  static constexpr size_t kKeptAnswers = 16;

  // How wide a bracket of one offset now is; nothing without an answer or when rates differ.
  std::optional<Cycles> Error() const;
  // How often an answer contradicted the offset of those before: the guest's clock was set, or the
  // guest was migrated or resumed.
  uint64_t jumps() const { return jumps_; }

 private:
  struct Answer {
    Tsc before;
    uint64_t guest;
    Tsc after;
    uint64_t epoch;  // number of jumps before it
  };
  // guest - host is in [low, low + width], modulo 2^64.
  struct Offset {
    uint64_t low;
    uint64_t width;
  };

  static std::optional<Offset> Intersect(const Offset& a, const Offset& b);

  bool same_rate_;
  std::vector<Answer> answers_;
  std::vector<Offset> offsets_;  // by epoch - first_epoch_
  uint64_t first_epoch_ = 0;
  uint64_t jumps_ = 0;
};

}  // namespace xenoscope::sampler
