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
  for (Sum& sum : std::exchange(sums_, {})) {
    if (sum.time.stays > 0) sum.time.median_stay = median_stay;
    if (sum.time.cycles > 0) observer.OnTraced(vcpu_, sum.context, sum.time);
  }
}

}  // namespace xenoscope::correlate
