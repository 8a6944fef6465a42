// From the clock of perf's samples, in nanoseconds, to the TSC.
//
// Where Linux itself reads the TSC for it, the page of a ring says how (cap_user_time_zero). Where
// it does not, as under Xen and KVM, pairs of the two are taken through the ring: a record that
// this thread causes carries perf's time, and the TSC read before and after it bounds when that
// was. Between two pairs both clocks are nearly straight lines, so that lines through the bounds
// bound the TSC; for what they bend, 30 millionths of the way to the nearer pair are added.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>

#include "base/tsc.h"

namespace xenoscope::sampler {

class PerfClock {
 public:
  // The conversion that the page offers, if any. May be called again: the kernel keeps it current.
  void SetConversion(const perf_event_mmap_page& page);
  // Perf's clock said `time` at an instant within `tsc`. In the order of time.
  void AddPair(uint64_t time, TscRange tsc);

  // Whether the page's conversion serves; known once there is a pair, which must agree with it.
  bool IsExact() const { return exact_ && agrees_; }
  // Up to this time pairs bound the TSC. 0 when there are none.
  uint64_t PairedUntil() const { return last_ ? last_->time : 0; }

  // When that was: one instant where the conversion is exact, else a bracket. Of times after the
  // last pair the end is `now`.
  TscRange At(uint64_t time, Tsc now) const;

  // TSC cycles a second, by the pairs; 0 with fewer than two.
  uint64_t Hz() const;

 private:
  struct Pair {
    uint64_t time;
    TscRange tsc;
  };
  std::optional<Tsc> FromPage(uint64_t time) const;

  bool exact_ = false;
  bool agrees_ = true;
  uint64_t zero_ = 0;
  uint32_t mult_ = 0;
  uint16_t shift_ = 0;
  std::optional<Pair> first_;  // of all
  std::optional<Pair> before_;
  std::optional<Pair> last_;
};

}  // namespace xenoscope::sampler
