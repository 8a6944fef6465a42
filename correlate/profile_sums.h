// The sums from which shares are estimated: by stratum, by row, and by row in each stratum.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/interner.h"
#include "correlate/context.h"
#include "correlate/estimate.h"
#include "correlate/row_key.h"
#include "correlate/stratum_unions.h"

namespace xenoscope::correlate {

// The time that one vCPU spent in one context (docs/method.md, section 4.1). Time that no trace
// measures is one stratum for all vCPUs.
struct Stratum {
  VcpuRef vcpu;
  Context context;
  ClusterTotals totals;
  double size = 0;     // in cycles
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

// All rows by some choice of dimensions.
struct RowSums {
  explicit RowSums(std::span<const Dimension> by) : layout(by) {}

  KeyLayout layout;
  Interner<RowKey, 4096> keys;
  Interner<uint64_t, 4096> part_numbers;  // by row and stratum
  std::vector<Part> parts;

  // Returns the number of the row with the key, which may be a new one. O(1).
  uint32_t Find(const RowKey& key) {
    uint64_t mixed = 0;
    for (const uint64_t value : key) mixed = MultiplyHash(mixed ^ value);
    return keys.Intern(key, mixed >> 32);
  }
  // Returns the number of the row's part in the stratum, which may be a new one. O(1).
  uint32_t PartOf(uint32_t row, uint32_t stratum) {
    const uint64_t key = uint64_t{row} << 32 | stratum;
    const uint32_t number = part_numbers.Intern(key, MultiplyHash(key) >> 32);
    if (number == parts.size()) parts.push_back({.row = row, .stratum = stratum, .sums = {}});
    return number;
  }
};

}  // namespace xenoscope::correlate
