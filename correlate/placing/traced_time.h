// The time that one vCPU spent in its contexts, summed up before an observer is given it: a vCPU is
// in few contexts, again and again.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

class TracedTime {
 public:
  // Adds `time` to the sum of the context. A sum that must make room goes to the observer. O(1).
  void Add(VcpuRef vcpu, const Context& context, const ContextTime& time,
           PlacingObserver& observer);
  // Gives all sums to the observer, and forgets them. `median_stay` is that of the vCPU.
  void Flush(Cycles median_stay, PlacingObserver& observer);

 private:
  struct Sum {
    Context context;
    ContextTime time;
  };
  VcpuRef vcpu_;
  std::vector<Sum> sums_;  // by a hash of the context; empty until the first is added
};

}  // namespace xenoscope::correlate
