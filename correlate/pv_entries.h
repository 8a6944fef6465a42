// What PV guests did in Xen. The trace has when they entered it, not when they left: an entry took
// at most until the next one of its vCPU, or until the end of the vCPU's run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  // without the vCPU's index and the pCPU, and the range from there to its bound, as far as that is
  // sampled.

  // Begins an entry, which bounds that of the vCPU before it, if there is one. O(1).
  template <typename Visit>
  void OnMark(const Mark& mark, const Visit& visit) {
    if (mark.vcpu_index >= open_.size()) [[unlikely]] {
      open_.resize(size_t{mark.vcpu_index} + 1);
    }
    Entry& entry = open_[mark.vcpu_index];
    End(entry, mark.tsc, visit);
    if (!sampled_.Contains(mark.tsc)) return;
    // One by one: a copy of all would wait until what was written just before is in the cache.
    entry.mark.vcpu = mark.vcpu;
    entry.mark.tsc = mark.tsc;
    entry.mark.kind = mark.kind;
    entry.mark.number = mark.number;
    entry.is_open = true;
  }
  // Ends the vCPU's entry where its run ends, if there is one. O(1).
  template <typename Visit>
  void OnRunstateInterval(const RunstateInterval& interval, const Visit& visit) {
    if (interval.state != TimelineState::kRunning) return;
    if (interval.vcpu_index >= open_.size()) return;
    End(open_[interval.vcpu_index], interval.range.end, visit);
  }
  // Ends the entries that nothing has bounded: their vCPUs' runs ended when they began, so that
  // they have no length. O(vCPUs).
  template <typename Visit>
  void Finish(const Visit& visit) {
    for (Entry& entry : open_) End(entry, Tsc{0}, visit);
  }

 private:
  struct Entry {
    Mark mark;
    bool is_open = false;
  };

  template <typename Visit>
  void End(Entry& entry, Tsc at, const Visit& visit) {
    if (!entry.is_open) return;
    const TscRange bound{entry.mark.tsc, std::max(entry.mark.tsc, at)};
    visit(entry.mark, bound.Intersect(sampled_));
    entry.is_open = false;
  }

  const TscRange& sampled_;
  std::vector<Entry> open_;  // by VcpuTrack::index
};

}  // namespace xenoscope::correlate
