// Computes the variance of rows that span several strata of one vCPU. The stratum of a sample may
// not be known, but a sample less in one stratum is a sample more in another: sums over all strata
// together leave out what the variances of the single strata would count twice (docs/method.md,
// section 5.2).
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
  // The number of strata of a vCPU that are treated together; others count as independent.
  static constexpr size_t kMaxStrata = 128;
  static constexpr uint32_t kNone = ~uint32_t{0};

  // A cluster's samples in a stratum, or in a row's union of strata.
  struct Amount {
    uint32_t number = 0;  // the stratum's, from AddStratum, or the union's, from UnionNumber
    double samples = 0;
  };
  // The sums over a vCPU's clusters.
  struct VcpuSums {
    uint64_t clusters = 0;
    double samples = 0;
    double squares = 0;  // sum of the squares of a cluster's samples
  };
  // The sums over the clusters of a union's vCPU.
  struct UnionSums {
    double xx = 0;      // sum of the squares of its samples in a cluster
    double xn_all = 0;  // sum of their products with all of the cluster
  };
  // A row's share of a stratum's samples.
  struct Share {
    uint32_t stratum = 0;
    double share = 0;
  };

  // Adds a stratum of the vCPU. Returns its number among these, or kNone.
  uint32_t AddStratum(VcpuRef vcpu);
  // Returns the number of the row's union of strata of the vCPU. O(1).
  uint32_t UnionNumber(uint32_t row, VcpuRef vcpu);
  // Adds a cluster: the samples of all rows in each stratum, and the samples of each row in all
  // strata. O(strata (strata + rows)) of the cluster.
  void AddCluster(VcpuRef vcpu, std::span<const Amount> strata, std::span<const Amount> unions);
  // Returns the variance of the number of the union's samples, if the row has these shares of its
  // strata. O(strata^2).
  [[nodiscard]] double Variance(uint32_t number, std::span<const Share> shares) const;
  // Returns the same by counting alone, if the row has this share of all the vCPU's samples. O(1).
  [[nodiscard]] double PlainVariance(uint32_t number, double share) const;
  // Returns the number of all samples of the union's vCPU.
  [[nodiscard]] double SamplesOfVcpu(uint32_t number) const {
    return vcpus_[unions_[number].vcpu].sums.samples;
  }

  // Return the sums: of a vCPU, of products of two of its strata's samples in a cluster, of a
  // union, and of products of the union's samples with a stratum's. 0 where nothing was added.
  // O(1).
  [[nodiscard]] VcpuSums SumsOf(VcpuRef vcpu) const;
  [[nodiscard]] double ProductsOf(VcpuRef vcpu, uint32_t a, uint32_t b) const;
  [[nodiscard]] UnionSums SumsOf(uint32_t number) const { return unions_[number].sums; }
  [[nodiscard]] double ProductsOf(uint32_t number, uint32_t stratum) const;
  // Add such sums, of other clusters. Strata are of AddStratum, unions of UnionNumber. O(1).
  void Add(VcpuRef vcpu, const VcpuSums& sums);
  void AddProducts(VcpuRef vcpu, uint32_t a, uint32_t b, double sum);
  void Add(uint32_t number, const UnionSums& sums);
  void AddProducts(uint32_t number, uint32_t stratum, double sum);

 private:
  struct Vcpu {
    uint32_t strata = 0;
    VcpuSums sums;
    // By two strata, the lower triangle: sums of products of their samples in a cluster.
    std::vector<double> nn;
    double& At(uint32_t a, uint32_t b) { return nn[Triangle(a, b)]; }
    [[nodiscard]] double At(uint32_t a, uint32_t b) const { return nn[Triangle(a, b)]; }
  };
  struct Union {
    uint32_t vcpu = 0;
    UnionSums sums;
    std::vector<double> xn;  // by stratum: sums of products of its samples with the stratum's
  };

  [[nodiscard]] static size_t Triangle(uint32_t a, uint32_t b) {
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
