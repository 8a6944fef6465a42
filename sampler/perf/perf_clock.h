// A map from the clock of perf's samples, in ns, to the TSC.
//
// Where Linux computes its clock from the TSC, the page of a ring has the conversion
// (cap_user_time_zero). Where it does not, as under Xen and KVM, pairs of both clocks are taken
// through the ring: this thread causes a record that carries perf's time, and reads the TSC before
// and after, which bounds the record's TSC. Between two pairs both clocks are nearly straight
// lines, so lines through the bounds bound the TSC; 30 millionths of the distance to the nearer
// pair are added for the deviation.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>

#include "base/tsc.h"

namespace xenoscope::sampler {

class PerfClock {
 public:
  // Sets the conversion that the page offers, if any. May be called again, as the kernel keeps it
  // current.
  void SetConversion(const perf_event_mmap_page& page);
  // Adds a pair: perf's clock was `time` at an instant in `tsc`. Calls are in the order of time.
  void AddPair(uint64_t time, TscRange tsc);

  // Returns whether the page's conversion is used. That is known once there is a pair, which must
  // agree with it.
  [[nodiscard]] bool IsExact() const { return exact_ && agrees_; }
  // Returns perf's time up to which pairs bound the TSC; 0 when there are none.
  [[nodiscard]] uint64_t PairedUntil() const { return last_ ? last_->time : 0; }

  // Returns the range of the TSC at perf's `time`: one instant where the conversion is exact. For
  // times after the last pair the range ends at `now`.
  [[nodiscard]] TscRange At(uint64_t time, Tsc now) const;

  // Returns TSC cycles a second, by the pairs; 0 with fewer than two.
  [[nodiscard]] uint64_t Hz() const;

 private:
  struct Pair {
    uint64_t time;
    TscRange tsc;
  };
  [[nodiscard]] std::optional<Tsc> FromPage(uint64_t time) const;

  bool exact_ = false;
  bool agrees_ = true;
  uint64_t zero_ = 0;
  uint32_t mult_ = 0;
  uint16_t shift_ = 0;
  std::optional<Pair> first_;  // the very first pair; before_ and last_ are the latest two
  std::optional<Pair> before_;
  std::optional<Pair> last_;
};

}  // namespace xenoscope::sampler
