#include "correlate/placing/traced_time.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace xenoscope::correlate {
namespace {

// How many contexts' sums are kept at once.
constexpr size_t kMaxSums = 32;

uint64_t HashOf(const Context& context) {
  return context.reason + 7 * static_cast<uint64_t>(context.kind) + context.number +
         context.waiting + context.wakeup + context.thread;
}

}  // namespace

void TracedTime::Add(VcpuRef vcpu, const Context& context, const ContextTime& time,
                     PlacingObserver& observer) {
  if (sums_.empty()) {
    vcpu_ = vcpu;
    sums_.resize(kMaxSums);
  }
  Sum& sum = sums_[HashOf(context) % kMaxSums];
  if (sum.context != context) {
    if (sum.time.cycles > 0) observer.OnTraced(vcpu, sum.context, sum.time);
    sum = {context, {}};
  }
  sum.time.cycles += time.cycles;
  sum.time.stays += time.stays;
}

void TracedTime::Flush(Cycles median_stay, PlacingObserver& observer) {
  for (Sum& sum : std::exchange(sums_, {})) {
    if (sum.time.stays > 0) sum.time.median_stay = median_stay;
    if (sum.time.cycles > 0) observer.OnTraced(vcpu_, sum.context, sum.time);
  }
}

}  // namespace xenoscope::correlate
