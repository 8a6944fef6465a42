#include "correlate/transition_cost.h"

#include <algorithm>
#include <vector>

namespace xenoscope::correlate {
namespace {

// What is known before there is a sample: costs are hundreds to thousands of cycles. Their standard
// deviation from 0, in cycles, so that guests that hardly exit have hardly any uncertainty.
constexpr double kPriorDeviation = 10000;

// One vCPU's own estimate.
struct Observed {
  VcpuRef vcpu;
  double cycles = 0;
  double variance = 0;
};

// The cost for all vCPUs, and how much theirs differ.
struct Pool {
  double cycles = 0;
  double variance = 0;
  double between = 0;  // the variance of costs between vCPUs
};

Observed Observe(VcpuRef ref, const VcpuModes& vcpu) {
  const double share = vcpu.samples.xen.x / vcpu.samples.all.n;
  const double scale = vcpu.cycles / vcpu.stays;
  return {
      .vcpu = ref,
      .cycles = std::min(share * scale - vcpu.xen_cycles / vcpu.stays, vcpu.median_stay),
      .variance = ShareVariance(vcpu.samples.xen, vcpu.samples.all) * scale * scale,
  };
}

// Returns the mean with weights 1 / (variance + between), and its variance.
Pool PoolWith(const std::vector<Observed>& observed, double between) {
  double weights = 1 / (kPriorDeviation * kPriorDeviation);
  double sum = 0;
  for (const Observed& each : observed) {
    const double weight = 1 / (each.variance + between);
    weights += weight;
    sum += weight * each.cycles;
  }
  return {.cycles = sum / weights, .variance = 1 / weights, .between = between};
}

// Returns by how much the costs of vCPUs differ beyond what chance explains: their variance.
double VarianceBetween(const std::vector<Observed>& observed) {
  double w = 0;
  double ww = 0;
  double wc = 0;
  for (const Observed& each : observed) {
    w += 1 / each.variance;
    ww += 1 / (each.variance * each.variance);
    wc += each.cycles / each.variance;
  }
  double q = 0;  // Cochran's Q
  for (const Observed& each : observed) {
    const double apart = each.cycles - wc / w;
    q += apart * apart / each.variance;
  }
  const double scale = w - ww / w;
  const auto degrees = static_cast<double>(observed.size()) - 1;
  return degrees < 1 || scale <= 0 ? 0 : std::max(0.0, (q - degrees) / scale);
}

}  // namespace

TransitionCosts::TransitionCosts(const absl::btree_map<VcpuRef, VcpuModes>& vcpus) {
  std::vector<Observed> observed;
  double in_xen = 0;
  for (const auto& [ref, vcpu] : vcpus) {
    in_xen += vcpu.samples.xen.x;
    if (vcpu.stays > 0 && vcpu.samples.all.n > 0) observed.push_back(Observe(ref, vcpu));
  }
  if (in_xen <= 0) return;  // samples of guests alone: they say nothing of Xen
  const Pool pool = PoolWith(observed, VarianceBetween(observed));
  pooled_variance_ = pool.variance;
  for (const auto& [ref, vcpu] : vcpus) {
    if (vcpu.stays > 0) costs_[ref] = {pool.cycles, pool.between, 1};
  }
  for (const Observed& each : observed) {
    const double own = pool.between / (pool.between + each.variance);
    const double cycles = own * each.cycles + (1 - own) * pool.cycles;
    costs_[each.vcpu] = {cycles, own * each.variance, 1 - own};
  }
  for (auto& [ref, cost] : costs_) {
    cost.cycles = std::clamp(cost.cycles, 0.0, vcpus.at(ref).median_stay);
  }
}

double TransitionCosts::CostOf(VcpuRef vcpu) const {
  const auto cost = costs_.find(vcpu);
  return cost == costs_.end() ? 0 : cost->second.cycles;
}

double TransitionCosts::Variance(const absl::btree_map<VcpuRef, double>& stays) const {
  double common = 0;
  double own = 0;
  for (const auto& [vcpu, number] : stays) {
    const auto cost = costs_.find(vcpu);
    if (cost == costs_.end()) continue;
    common += number * cost->second.pooled;
    own += number * number * cost->second.variance;
  }
  return common * common * pooled_variance_ + own;
}

}  // namespace xenoscope::correlate
