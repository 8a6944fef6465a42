// The time of context switches from domains that have had no sample in Xen yet. Samples in switches
// are logged for the vCPU that stops, so that switches from a domain without samples have none
// (docs/method.md, section 4.5).
#pragma once

#include <bitset>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

// Memory: a sum for each such domain, and vCPU and context that Xen switched to from it.
class UnsampledSwitches {
 public:
  // `observer` receives the time: as kSwitch if a sample of the domain comes later, else as
  // kUnsampledSwitch. It outlives this.
  explicit UnsampledSwitches(PlacingObserver& observer) : observer_(observer) {}

  // Whether a sample of the domain was taken in Xen. O(1).
  [[nodiscard]] bool IsSampled(DomainId domain) const { return sampled_[domain.value]; }
  // Xen switched from a vCPU of the domain, which is not sampled, to `to` for that many cycles. The
  // context is a kSwitch. O(log sums).
  void Add(DomainId from, VcpuRef to, const Context& context, Cycles cycles) {
    if (cycles > 0) unsampled_[from][{to, context}] += cycles;
  }
  // A sample of the domain was taken in Xen. O(1), but for the first one.
  void NoteSample(DomainId domain) {
    if (!sampled_[domain.value]) [[unlikely]] {
      NoteFirstSample(domain);
    }
  }
  // Gives the observer the time of the domains that have had no sample. O(sums).
  void Finish();

 private:
  using Sums = absl::btree_map<std::pair<VcpuRef, Context>, Cycles>;

  void NoteFirstSample(DomainId domain);
  void Flush(const Sums& sums, ContextKind kind);

  PlacingObserver& observer_;
  std::bitset<std::numeric_limits<uint16_t>::max() + 1> sampled_;  // by domain
  absl::btree_map<DomainId, Sums> unsampled_;  // by the domain of the vCPU that stopped
};

}  // namespace xenoscope::correlate
