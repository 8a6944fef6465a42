// What PV guests did in Xen. The trace has when they entered it, not when they left: an entry took
// at most until the next one of its vCPU, or until the end of the vCPU's run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/tsc.h"
#include "correlate/timeline.h"

namespace xenoscope::correlate {

// Bounds the entries that begin within a range. Feed it with what a TimelineObserver gets. Memory:
// an entry for each vCPU.
class PvEntryBounds {
 public:
  // `sampled` is the range. It must outlive this, and be known before the first mark.
  explicit PvEntryBounds(const TscRange& sampled) : sampled_(sampled) {}

  // The functions call visit(const Mark&, TscRange) for an entry whose bound is known: its begin,
  // and the range from there to its bound, as far as that is sampled.

  // Begins an entry, which bounds that of the vCPU before it, if there is one. O(1).
  template <typename Visit>
  void OnMark(const Mark& mark, const Visit& visit) {
    End(mark.vcpu_index, mark.tsc, visit);
    if (!sampled_.Contains(mark.tsc)) return;
    if (mark.vcpu_index >= open_.size()) open_.resize(size_t{mark.vcpu_index} + 1);
    open_[mark.vcpu_index] = mark;
  }
  // Ends the vCPU's entry where its run ends, if there is one. O(1).
  template <typename Visit>
  void OnRunstateInterval(const RunstateInterval& interval, const Visit& visit) {
    if (interval.state != TimelineState::kRunning) return;
    End(interval.vcpu_index, interval.range.end, visit);
  }
  // Ends the entries that nothing has bounded: their vCPUs' runs ended when they began, so that
  // they have no length. O(vCPUs).
  template <typename Visit>
  void Finish(const Visit& visit) {
    for (uint32_t i = 0; i < open_.size(); ++i) End(i, Tsc{0}, visit);
  }

 private:
  template <typename Visit>
  void End(uint32_t vcpu_index, Tsc at, const Visit& visit) {
    if (vcpu_index >= open_.size() || !open_[vcpu_index]) return;
    const Mark& mark = *open_[vcpu_index];
    const TscRange bound{mark.tsc, std::max(mark.tsc, at)};
    visit(mark, bound.Intersect(sampled_));
    open_[vcpu_index].reset();
  }

  const TscRange& sampled_;
  std::vector<std::optional<Mark>> open_;  // by VcpuTrack::index
};

}  // namespace xenoscope::correlate
