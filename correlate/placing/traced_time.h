// The time that one vCPU spent in its contexts, summed up before an observer is given it: a vCPU is
// in few contexts, again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

class TracedTime {
 public:
  // Adds `time` to the sum of the context. A sum that must make room goes to the observer. O(1).
  void Add(VcpuRef vcpu, const Context& context, const ContextTime& time,
           PlacingObserver& observer) {
    if (sums_.empty()) [[unlikely]] {
      Begin(vcpu);
    }
    Sum& sum = sums_[PlaceOf(context)];
    if (sum.context != context) [[unlikely]] {
      Replace(sum, context, observer);
    }
    sum.time.cycles += time.cycles;
    sum.time.stays += time.stays;
  }
  // Gives all sums to the observer, and forgets them. `median_stay` is that of the vCPU.
  void Flush(Cycles median_stay, PlacingObserver& observer);

 private:
  struct Sum {
    Context context;
    ContextTime time;
  };
  // So many contexts' sums are kept at once: that of the guest, to which exits return, and
  // 2^kPlaceBits others.
  static constexpr unsigned kPlaceBits = 5;
  static constexpr size_t kPlaces = 1 + (size_t{1} << kPlaceBits);

  // Returns the place of the context's sum.
  [[nodiscard]] static size_t PlaceOf(const Context& context) {
    const bool is_guest = context.kind == ContextKind::kGuest;
    if (is_guest && (context.waiting | context.wakeup | context.thread) == 0) return 0;
    return 1 + (MultiplyHash(Mixed(context)) >> (64 - kPlaceBits));
  }
  void Begin(VcpuRef vcpu);
  // Makes the sum that of the context, from 0 on.
  void Replace(Sum& sum, const Context& context, PlacingObserver& observer) const;

  VcpuRef vcpu_;
  std::vector<Sum> sums_;  // by PlaceOf; empty until the first is added
};

}  // namespace xenoscope::correlate
