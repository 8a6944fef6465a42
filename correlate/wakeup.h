// What woke a vCPU: the interrupt that it was given on its way back into the guest, from there to
// its next halt. Of PV guests, and where no interrupt was given before the first VMENTRY, the trace
// does not tell.
#pragma once

#include <cstdint>

#include "correlate/timeline.h"

namespace xenoscope::correlate {

class Wakeup {
 public:
  // The trace has not seen it wake.
  static constexpr uint32_t kNone = 0;
  // It woke, by what is not known.
  static constexpr uint32_t kOther = 1;
  // By an interrupt: this and its vector.
  static constexpr uint32_t kVector = 2;

  void OnState(TimelineState state, TimelineState before) {
    if (state == TimelineState::kBlocked || state == TimelineState::kLost) {
      now_ = kNone;
    } else if (before == TimelineState::kBlocked) {
      now_ = kOther;
      entered_ = false;
    }
  }
  // The vCPU was given an interrupt.
  void OnInterrupt(uint32_t vector) {
    if (now_ == kOther && !entered_) now_ = kVector + (vector & 0xff);
  }
  void OnEntry() { entered_ = true; }

  uint32_t now() const { return now_; }

 private:
  uint32_t now_ = kNone;
  bool entered_ = false;  // the guest, since it woke
};

}  // namespace xenoscope::correlate
