// The sums from which shares are estimated: by stratum, by row, and by row in each stratum. They
// add up over recordings, of one host or of several.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/interner.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/row_key.h"
#include "correlate/stratum_unions.h"
#include "correlate/transition_cost.h"

namespace xenoscope::correlate {

// The time that one vCPU spent in one context (docs/method.md, section 4.1). Time that no trace
// measures is one stratum for all vCPUs.
struct Stratum {
  VcpuRef vcpu;
  Context context;
  // The host whose time it is, by any number: the samples of each host stand for cycles of their
  // own. The strata of all recordings of a host are one recording's.
  uint32_t host = 0;
  ClusterTotals totals;
  double size = 0;           // in cycles
  double size_variance = 0;  // the variance of the size, where only samples show it
  double period = 1;         // kUntraced: the cycles that a sample stands for
  // Whether Xen's and the guest's part of the vCPU are compared in its samples (method.md §4.3).
  bool has_both_modes = false;
  double stays = 0;    // kGuest, kTransition: how often the vCPU entered the guest
  uint32_t guest = 0;  // kTransition: the stratum of the guest's time, of which it is a part
  // The stratum's number among the vCPU's, where rows can be of several strata.
  uint32_t of_vcpu = StratumUnions::kNone;
  // Samples in the cluster that is being closed, and the same by length; 0 between clusters.
  double in_cluster = 0;
  double length = 0;
};

// What a row has in a stratum.
struct Part {
  uint32_t row = 0;      // index into RowSums::keys
  uint32_t stratum = 0;  // index of the stratum
  uint32_t union_number = StratumUnions::kNone;
  ClusterSums sums;
  double in_cluster = 0;  // samples in the cluster that is being closed; 0 between clusters
  uint64_t closing = 0;   // the number of the last cluster that it had a part in

  // Adds a cluster: `in_row` of its `in_stratum` samples in the stratum are of the row.
  void AddCluster(double in_row, double in_stratum) {
    sums.x += in_row;
    sums.xx += in_row * in_row;
    sums.xn += in_row * in_stratum;
  }
};

// Returns the first number of the rows of the sums number `range` in StratumUnions, so that those
// of different sums differ: each has 2^26 numbers.
[[nodiscard]] constexpr uint32_t FirstUnion(uint32_t range) { return range << 26; }

// All rows by some choice of dimensions.
struct RowSums {
  explicit RowSums(std::span<const Dimension> by, uint32_t first = 0)
      : layout(by), first_union(first) {
    has_unions = !layout.Has(Dimension::kExit) && !layout.Has(Dimension::kSubreason) &&
                 !layout.Has(Dimension::kWaiting) && !layout.Has(Dimension::kWakeup);
  }

  KeyLayout layout;
  uint32_t first_union = 0;  // FirstUnion: added to numbers of rows in StratumUnions
  bool has_unions = false;   // rows can be of several strata of a vCPU
  Interner<RowKey, 4096> keys;
  Interner<uint64_t, 4096> part_numbers;  // by row and stratum
  std::vector<Part> parts;

  // Returns the number of the row with the key, which may be a new one. O(1).
  uint32_t Find(const RowKey& key) {
    uint64_t mixed = 0;
    for (const uint64_t value : key) mixed = MultiplyHash(mixed ^ value);
    return keys.Intern(key, mixed);
  }
  // Returns the number of the row's part in the stratum, which may be a new one. O(1).
  uint32_t PartOf(uint32_t row, uint32_t stratum) {
    const uint64_t key = uint64_t{row} << 32 | stratum;
    const uint32_t number = part_numbers.Intern(key, key);
    if (number == parts.size()) parts.push_back({.row = row, .stratum = stratum, .sums = {}});
    return number;
  }
};

// All strata, and what their sizes rest on.
struct Strata {
  std::vector<Stratum> all;
  StratumUnions unions;
  TransitionCosts transitions;
};

// All that a profile is estimated from.
struct ProfileSums {
  explicit ProfileSums(std::span<const Dimension> by);

  RowSums rows;
  RowSums totals;  // by the same keys: samples in whose stacks a row's functions are, each once
  RowSums domains;
  Strata strata;
  absl::flat_hash_map<VcpuRef, ModeSums> modes;
  absl::flat_hash_map<VcpuRef, double> median_stays;     // of vCPUs of HVM guests, in cycles
  absl::flat_hash_map<VcpuRef, double> cluster_squares;  // by vCPU: sum of n_c^2 in traced strata
  double samples = 0;
  std::vector<std::string> names;  // by the numbers of images, functions and lines in keys
};

}  // namespace xenoscope::correlate
