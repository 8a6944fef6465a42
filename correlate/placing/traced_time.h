// The time that one vCPU spent in its contexts, summed up before an observer is given it: a vCPU is
// in few contexts, again and again.
#pragma once

#include <array>
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
  [[gnu::always_inline]] void Add(VcpuRef vcpu, const Context& context, const ContextTime& time,
                                  PlacingObserver& observer) {
    if (sums_.empty()) [[unlikely]] {
      Begin(vcpu);
    }
    if (IsPlainGuest(context)) {
      ContextTime& sum = in_guest_[static_cast<size_t>(context.nested)];
      sum.cycles += time.cycles;
      sum.stays += time.stays;
      return;
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
  // The sums of so many contexts are kept at once, beside that of the guest, to which exits return.
  static constexpr unsigned kPlaceBits = 5;
  static constexpr size_t kPlaces = size_t{1} << kPlaceBits;

  // Whether the context is that of the guest, and nothing is told apart in it.
  [[nodiscard]] static bool IsPlainGuest(const Context& context) {
    return context.kind == ContextKind::kGuest &&
           (context.waiting | context.wakeup | context.thread) == 0;
  }
  // Returns the place of the context's sum.
  [[nodiscard]] static size_t PlaceOf(const Context& context) {
    return MultiplyHash(Mixed(context)) >> (64 - kPlaceBits);
  }
  void Begin(VcpuRef vcpu);
  // Makes the sum that of the context, from 0 on.
  void Replace(Sum& sum, const Context& context, PlacingObserver& observer) const;

  VcpuRef vcpu_;
  std::array<ContextTime, 2> in_guest_{};  // of IsPlainGuest: in the guest, and in a nested one
  std::vector<Sum> sums_;                  // of others, by PlaceOf; empty until the first is added
};

}  // namespace xenoscope::correlate
