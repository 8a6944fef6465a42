// Divides a pass over a trace into windows of time and, in each window, the pCPUs into groups that
// have nothing to do with each other. A pass takes one group after the other, so that it switches
// between few pCPUs, and what it knows of their vCPUs stays in the processor's caches.
//
// Two pCPUs are in one group if a vCPU, or two vCPUs of one domain, belong to both: a vCPU belongs
// to the pCPUs whose traces name it in the window, and to the one where it was before (where it
// ran, or waits). Idle vCPUs are of no domain. Where something may concern more than the vCPUs that
// are named (losses, damage, the end of a domain), all pCPUs are in one group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"

namespace xenoscope::correlate {

// The length of a window, in bytes of one pCPU's trace. In longer windows more pCPUs have to do
// with each other; each window costs the search for the records of each pCPU in the caches.
inline constexpr uint64_t kGroupWindowBytes = uint64_t{512} << 10;

// The shortest stretch of a trace that is divided into groups of pCPUs, in cycles (about a
// millisecond): the search for them costs more than it saves in a shorter one.
inline constexpr Cycles kLeastGrouped = Cycles{1} << 22;

class PcpuGroups {
 public:
  // `timeline` has taken all that comes before a window. It outlives the groups.
  explicit PcpuGroups(const Timeline& timeline, uint64_t window_bytes = kGroupWindowBytes)
      : timeline_(&timeline), window_bytes_(window_bytes) {}

  struct Window {
    Tsc through;                       // the last instant
    std::span<const uint32_t> groups;  // by number of the pCPU; empty: all are in one group
  };
  // Returns the next window of the stream, which is not at its end, up to the time `through` at
  // most. Reads the records of the window, but not of every window if most pCPUs are in one group.
  // O(records). The result is valid until the next call.
  [[nodiscard]] Window Next(const trace::OrderedStream& stream, Tsc through);

  // Gives the items of the stream up to the time `through` to the handler in the order
  // trace::RecordOrder::kGroups. The handler gives them to the timeline.
  template <bool kCount, typename Target, trace::RecordHandler<Target> Handler>
  void ForEach(trace::OrderedStream& stream, Tsc through, const trace::EventTargets<Target>& wanted,
               Handler& handler);

 private:
  // The number of windows in a row that may be taken without a search for groups.
  static constexpr uint32_t kMaxWindowsAsOne = 64;

  // Finds the groups of what comes up to `through`; returns whether they are worth it. `is_cut`: a
  // window of length_ would have been longer.
  bool FindGroups(const trace::OrderedStream& stream, Tsc through, bool is_cut);
  // Sets the length for windows of about window_bytes_. O(1).
  void Adapt(uint64_t bytes, size_t pcpus, bool is_cut);
  // Makes groups_ name each group by one pCPU; returns whether to take one group after the other,
  // of so many pCPUs that have records. That pays if most are alone, as these are read without a
  // merge, or if there are many. Otherwise the search, a tenth of a pass, takes longer than it
  // saves.
  bool AreWorthIt(size_t pcpus);

  const Timeline* timeline_;
  uint64_t window_bytes_;
  Cycles length_ = Cycles{1} << 10;
  uint32_t as_one_ = 0;           // the number of windows without a search after the last one with
  Tsc search_from_;               // windows that begin before are not searched for groups
  std::vector<uint32_t> groups_;  // by pCPU: another one of the same group, or itself
  std::vector<uint32_t> sizes_;   // the numbers of pCPUs of the groups
  absl::flat_hash_map<uint64_t, PcpuId> first_of_;  // a pCPU of each vCPU or domain that is named
};

template <bool kCount, typename Target, trace::RecordHandler<Target> Handler>
void PcpuGroups::ForEach(trace::OrderedStream& stream, Tsc through,
                         const trace::EventTargets<Target>& wanted, Handler& handler) {
  while (stream.open_pcpus() > 1 && stream.next_tsc() <= through) {
    const Window window = Next(stream, through);
    if (window.groups.empty()) {
      stream.ForEach<kCount, trace::RecordOrder::kCrossing>(window.through, wanted, handler);
    } else {
      stream.ForEachGroup<kCount>(window.through, window.groups, wanted, handler);
    }
  }
  // One pCPU needs no groups; and the file's own damages come last.
  stream.ForEach<kCount, trace::RecordOrder::kCrossing>(through, wanted, handler);
}

}  // namespace xenoscope::correlate
