// Estimates how many cycles a vCPU is in Xen between VMENTRY and VMEXIT: after the one record until
// its guest runs, and from where that stops until the other record. Samples have their true mode,
// and the trace has the time between its records (docs/method.md, section 4.3).
#pragma once

#include <limits>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "correlate/estimate.h"

namespace xenoscope::correlate {

// The samples of a vCPU in Xen (the row) among all of the vCPU.
struct ModeSums {
  ClusterSums xen;
  ClusterTotals all;

  // Adds a cluster: `in_xen` of its `samples` samples were taken in Xen.
  void AddCluster(double in_xen, double samples) {
    xen.x += in_xen;
    xen.xx += in_xen * in_xen;
    xen.xn += in_xen * samples;
    all.n += samples;
    all.nn += samples * samples;
    ++all.clusters;
  }
};

// What trace and samples have of a vCPU of an HVM guest.
struct VcpuModes {
  double cycles = 0;      // running
  double xen_cycles = 0;  // of these, not between VMENTRY and VMEXIT
  double stays = 0;       // between VMENTRY and VMEXIT
  double median_stay = std::numeric_limits<double>::infinity();
  ModeSums samples;
};

// The cost of a stay's transitions in cycles, by vCPU: a random-effects estimate (DerSimonian and
// Laird, Controlled Clinical Trials 7 (1986) 177-188), as the costs of vCPUs are alike but not
// equal.
class TransitionCosts {
 public:
  TransitionCosts() = default;
  // O(vCPUs). All costs are 0 if no sample was taken in Xen.
  explicit TransitionCosts(const absl::btree_map<VcpuRef, VcpuModes>& vcpus);

  // Returns the cycles for each stay: at least 0, and at most the median of stays.
  [[nodiscard]] double CostOf(VcpuRef vcpu) const;
  // Returns the variance of the sum over vCPUs of a number of stays times the cost, in cycles
  // squared. The error of the pooled cost is common to all vCPUs. O(vCPUs).
  [[nodiscard]] double Variance(const absl::btree_map<VcpuRef, double>& stays) const;

 private:
  struct Cost {
    double cycles = 0;
    double variance = 0;  // if the pooled cost were known
    double pooled = 0;    // the weight of the pooled cost, in [0, 1]
  };
  absl::flat_hash_map<VcpuRef, Cost> costs_;
  double pooled_variance_ = 0;
};

}  // namespace xenoscope::correlate
