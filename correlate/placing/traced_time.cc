#include "correlate/placing/traced_time.h"

#include <utility>

namespace xenoscope::correlate {

void TracedTime::Begin(VcpuRef vcpu) {
  vcpu_ = vcpu;
  sums_.resize(kPlaces);
}

void TracedTime::Replace(Sum& sum, const Context& context, PlacingObserver& observer) const {
  if (sum.time.cycles > 0) observer.OnTraced(vcpu_, sum.context, sum.time);
  sum = {context, {}};
}

void TracedTime::Flush(Cycles median_stay, PlacingObserver& observer) {
  const auto give = [&](const Context& context, ContextTime time) {
    if (time.stays > 0) time.median_stay = median_stay;
    if (time.cycles > 0) observer.OnTraced(vcpu_, context, time);
  };
  for (const bool nested : {false, true}) {
    give({ContextKind::kGuest, nested}, std::exchange(in_guest_[static_cast<size_t>(nested)], {}));
  }
  for (const Sum& sum : std::exchange(sums_, {})) give(sum.context, sum.time);
}

}  // namespace xenoscope::correlate
