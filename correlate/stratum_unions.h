// Rows that are of several strata of one vCPU: which stratum a sample was of may be open, but one
// less here is one more there. What their strata's variances would count twice is left out by sums
// over all strata together (docs/method.md, section 5.2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"

namespace xenoscope::correlate {

class StratumUnions {
 public:
  // Strata of a vCPU beyond so many are left to be independent of the others.
  static constexpr size_t kMaxStrata = 128;
  static constexpr uint32_t kNone = ~uint32_t{0};

  // What a cluster has in a stratum, or a row has of it.
  struct Amount {
    uint32_t number = 0;  // of a stratum, by AddStratum; of a row's union, by UnionNumber
    double samples = 0;
  };
  // What a row has in a stratum: its share of the stratum's samples.
  struct Share {
    uint32_t stratum = 0;
    double share = 0;
  };

  // A further stratum of the vCPU: its number among these, or kNone.
  uint32_t AddStratum(VcpuRef vcpu);
  // The number of the row's union of strata of the vCPU. O(1).
  uint32_t UnionNumber(uint32_t row, VcpuRef vcpu);
  // A cluster: what all rows have of it, by stratum, and what each row has in all of these.
  // O(strata (strata + rows)) of the cluster.
  void AddCluster(VcpuRef vcpu, std::span<const Amount> strata, std::span<const Amount> unions);
  // The variance of the number of the union's samples, with the shares that the row has in its
  // strata. O(strata^2).
  double Variance(uint32_t number, std::span<const Share> shares) const;
  // The same, with a share that the row has of all the vCPU's samples: of counting alone. O(1).
  double PlainVariance(uint32_t number, double share) const;
  // All samples of the vCPU that the union is of.
  double SamplesOfVcpu(uint32_t number) const { return vcpus_[unions_[number].vcpu].samples; }

 private:
  struct Vcpu {
    uint32_t strata = 0;
    uint64_t clusters = 0;
    double samples = 0;
    double squares = 0;  // of those of a cluster
    // By two strata, the lower triangle: sums of products of their samples in a cluster.
    std::vector<double> nn;
    double& At(uint32_t a, uint32_t b) { return nn[Triangle(a, b)]; }
    double At(uint32_t a, uint32_t b) const { return nn[Triangle(a, b)]; }
  };
  struct Union {
    uint32_t vcpu = 0;
    double xx = 0;           // sum of the squares of its samples in a cluster
    double xn_all = 0;       // sum of their products with all of the cluster
    std::vector<double> xn;  // by stratum: sums of their products with the stratum's
  };

  static size_t Triangle(uint32_t a, uint32_t b) {
    const size_t row = std::max(a, b);
    return row * (row + 1) / 2 + std::min(a, b);
  }
  uint32_t VcpuNumber(VcpuRef vcpu);

  absl::flat_hash_map<VcpuRef, uint32_t> vcpu_index_;
  std::vector<Vcpu> vcpus_;
  absl::flat_hash_map<uint64_t, uint32_t> index_;  // by row and vCPU
  std::vector<Union> unions_;
};

}  // namespace xenoscope::correlate
