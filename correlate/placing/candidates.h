// The places and clusters that samples of one bracket and mode can have been in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/ranks.h"
#include "correlate/timeline_history.h"

namespace xenoscope::correlate {

// One of the running intervals in which a sample can have been.
struct ClusterShare {
  Cycles until = 0;     // how much of all of them lies before the end of this one
  uint64_t number = 0;  // PlacedSample::cluster
};

// Empty when samples can have been nowhere that is known.
struct Candidates {
  size_t ranks = 0;  // ranks.h; 1 where the samples' order says nothing, 0 where this is empty
  std::vector<Place> places;               // of each rank, one rank after another
  std::array<uint32_t, kMaxRanks> ends{};  // the end of each rank in `places`
  uint64_t first_list = 0;             // PlacedSample::list of rank 0; those of other ranks follow
  std::vector<ClusterShare> clusters;  // in the order of time
  TscRange when;                       // the bracket
  double in_lost = 0;                  // the weight of lost time by length, in [0, 1]

  [[nodiscard]] bool empty() const { return ranks == 0; }
  [[nodiscard]] std::span<const Place> PlacesOf(size_t rank) const {
    const uint32_t begin = rank == 0 ? 0 : ends[rank - 1];
    return {places.data() + begin, ends[rank] - begin};
  }
  // Returns the cluster of a sample that has about `part` of the others before it, with `part` in
  // [0, 1). O(log clusters).
  [[nodiscard]] uint64_t ClusterAt(double part) const;

  // Adds the place's weight to the place that differs in nothing else, or adds the place. Returns
  // its index. O(places).
  size_t AddWeight(const Place& place);
  // Adds `length` cycles in the cluster, which is the last one or follows it. O(1).
  void AddToCluster(uint64_t number, Cycles length);
};

// Returns the place of a sample that was certainly in the interval.
[[nodiscard]] inline Place PlaceIn(const TimelineInterval& interval) {
  return {interval.context, interval.pcpu, 1};
}

// Returns the cluster of a sample (method.md §5.2): the running interval that it was in. These are
// in the order of time. Nothing says where a running interval ends while records are lost: there
// the cluster is the bracket. A million brackets are told apart between two running intervals.
[[nodiscard]] uint64_t ClusterOf(uint64_t timeslice_id, ContextKind kind, TscRange bracket);

}  // namespace xenoscope::correlate
