// What PV guests did in Xen. The trace has when they entered it, not when they left: an entry took
// at most until the next one of its vCPU, or until the end of the vCPU's run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/tsc.h"
#include "correlate/timeline.h"

namespace xenoscope::correlate {

// An entry whose bound is known.
struct PvEntry {
  Mark mark;         // its begin
  TscRange at_most;  // from there to its bound, as far as that is sampled
};

// Bounds the entries that begin within a range. Feed it with what a TimelineObserver gets. Memory:
// an entry for each vCPU.
class PvEntryBounds {
 public:
  // `sampled` is the range. It must outlive this, and be known before the first mark.
  explicit PvEntryBounds(const TscRange& sampled) : sampled_(sampled) {}

  // Begins an entry. Returns that of the vCPU before it, if there is one. O(1).
  std::optional<PvEntry> OnMark(const Mark& mark);
  // Ends the vCPU's entry where its run ends, and returns it, if there is one. O(1).
  std::optional<PvEntry> OnRunstateInterval(const RunstateInterval& interval);
  // Returns the entries that nothing has bounded: their vCPUs' runs ended when they began, so that
  // they have no length. O(vCPUs).
  [[nodiscard]] std::vector<PvEntry> Rest() const;

 private:
  std::optional<PvEntry> End(uint32_t vcpu_index, Tsc at);

  const TscRange& sampled_;
  std::vector<std::optional<Mark>> open_;  // by VcpuTrack::index
};

}  // namespace xenoscope::correlate
