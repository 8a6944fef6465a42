#include "correlate/stratum_unions.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

// Returns the variance of a sum over clusters, from the sum of the squares of their residuals.
double OfClusters(double residues, uint64_t clusters) {
  if (clusters < 2) return 0;
  const auto m = static_cast<double>(clusters);
  return std::max(residues, 0.0) * m / (m - 1);
}

}  // namespace

uint32_t StratumUnions::VcpuNumber(VcpuRef vcpu) {
  const auto [at, is_new] = vcpu_index_.try_emplace(vcpu, static_cast<uint32_t>(vcpus_.size()));
  if (is_new) vcpus_.emplace_back();
  return at->second;
}

uint32_t StratumUnions::AddStratum(VcpuRef vcpu) {
  Vcpu& entry = vcpus_[VcpuNumber(vcpu)];
  if (entry.strata == kMaxStrata) return kNone;
  entry.nn.resize(Triangle(entry.strata, entry.strata) + 1);
  return entry.strata++;
}

uint32_t StratumUnions::UnionNumber(uint32_t row, VcpuRef vcpu) {
  const uint32_t number = VcpuNumber(vcpu);
  const auto [at, is_new] =
      index_.try_emplace(uint64_t{row} << 32 | number, static_cast<uint32_t>(unions_.size()));
  if (is_new) unions_.push_back({number, 0, 0, {}});
  return at->second;
}

void StratumUnions::AddCluster(VcpuRef vcpu, std::span<const Amount> strata,
                               std::span<const Amount> unions) {
  Vcpu& entry = vcpus_[VcpuNumber(vcpu)];
  ++entry.clusters;
  double all = 0;
  for (const Amount& n : strata) all += n.samples;
  entry.samples += all;
  entry.squares += all * all;
  for (size_t i = 0; i < strata.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      entry.At(strata[i].number, strata[j].number) += strata[i].samples * strata[j].samples;
    }
  }
  for (const Amount& x : unions) {
    Union& row = unions_[x.number];
    row.xx += x.samples * x.samples;
    row.xn_all += x.samples * all;
    row.xn.resize(entry.strata);
    for (const Amount& n : strata) row.xn[n.number] += x.samples * n.samples;
  }
}

double StratumUnions::PlainVariance(uint32_t number, double share) const {
  const Union& row = unions_[number];
  const Vcpu& entry = vcpus_[row.vcpu];
  return OfClusters(row.xx - 2 * share * row.xn_all + share * share * entry.squares,
                    entry.clusters);
}

double StratumUnions::Variance(uint32_t number, std::span<const Share> shares) const {
  const Union& row = unions_[number];
  const Vcpu& entry = vcpus_[row.vcpu];
  double residues = row.xx;
  for (const Share& a : shares) {
    if (a.stratum < row.xn.size()) residues -= 2 * a.share * row.xn[a.stratum];
    for (const Share& b : shares) {
      residues += a.share * b.share * entry.At(a.stratum, b.stratum);
    }
  }
  return OfClusters(residues, entry.clusters);
}

}  // namespace xenoscope::correlate
