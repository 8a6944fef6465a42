// Follows what woke a vCPU: the interrupt that was injected on its way back into the guest, from
// then until its next halt. The trace does not say it for PV guests, and if no interrupt was
// injected before the first VMENTRY.
#pragma once

#include <cstdint>

#include "correlate/timeline.h"

namespace xenoscope::correlate {

class Wakeup {
 public:
  // The trace has not seen the vCPU wake.
  static constexpr uint32_t kNone = 0;
  // The vCPU woke for an unknown reason.
  static constexpr uint32_t kOther = 1;
  // The vCPU woke by an interrupt: this number and its vector.
  static constexpr uint32_t kVector = 2;

  void OnState(TimelineState state, TimelineState before) {
    if (state == TimelineState::kBlocked || state == TimelineState::kLost) {
      now_ = kNone;
    } else if (before == TimelineState::kBlocked) {
      now_ = kOther;
      entered_ = false;
    }
  }
  // Notes that an interrupt was injected into the vCPU.
  void OnInterrupt(uint32_t vector) {
    if (now_ == kOther && !entered_) now_ = kVector + (vector & 0xff);
  }
  void OnEntry() { entered_ = true; }

  [[nodiscard]] uint32_t now() const { return now_; }

 private:
  uint32_t now_ = kNone;
  bool entered_ = false;  // the vCPU has entered the guest since it woke
};

}  // namespace xenoscope::correlate
