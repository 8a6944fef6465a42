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
  if (is_new) unions_.push_back({number, {}, {}});
  return at->second;
}

void StratumUnions::AddCluster(VcpuRef vcpu, std::span<const Amount> strata,
                               std::span<const Amount> unions) {
  Vcpu& entry = vcpus_[VcpuNumber(vcpu)];
  double all = 0;
  for (const Amount& n : strata) all += n.samples;
  Add(vcpu, {1, all, all * all});
  for (size_t i = 0; i < strata.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      entry.At(strata[i].number, strata[j].number) += strata[i].samples * strata[j].samples;
    }
  }
  for (const Amount& x : unions) {
    Union& row = unions_[x.number];
    Add(x.number, {x.samples * x.samples, x.samples * all});
    row.xn.resize(entry.strata);
    for (const Amount& n : strata) row.xn[n.number] += x.samples * n.samples;
  }
}

StratumUnions::VcpuSums StratumUnions::SumsOf(VcpuRef vcpu) const {
  const auto at = vcpu_index_.find(vcpu);
  return at == vcpu_index_.end() ? VcpuSums() : vcpus_[at->second].sums;
}

double StratumUnions::ProductsOf(VcpuRef vcpu, uint32_t a, uint32_t b) const {
  return vcpus_[vcpu_index_.at(vcpu)].At(a, b);
}

double StratumUnions::ProductsOf(uint32_t number, uint32_t stratum) const {
  const std::vector<double>& xn = unions_[number].xn;
  return stratum < xn.size() ? xn[stratum] : 0;
}

void StratumUnions::Add(VcpuRef vcpu, const VcpuSums& sums) {
  VcpuSums& entry = vcpus_[VcpuNumber(vcpu)].sums;
  entry.clusters += sums.clusters;
  entry.samples += sums.samples;
  entry.squares += sums.squares;
}

void StratumUnions::AddProducts(VcpuRef vcpu, uint32_t a, uint32_t b, double sum) {
  vcpus_[VcpuNumber(vcpu)].At(a, b) += sum;
}

void StratumUnions::Add(uint32_t number, const UnionSums& sums) {
  unions_[number].sums.xx += sums.xx;
  unions_[number].sums.xn_all += sums.xn_all;
}

void StratumUnions::AddProducts(uint32_t number, uint32_t stratum, double sum) {
  std::vector<double>& xn = unions_[number].xn;
  if (stratum >= xn.size()) xn.resize(stratum + 1);
  xn[stratum] += sum;
}

double StratumUnions::PlainVariance(uint32_t number, double share) const {
  const Union& row = unions_[number];
  const Vcpu& entry = vcpus_[row.vcpu];
  return OfClusters(row.sums.xx - 2 * share * row.sums.xn_all + share * share * entry.sums.squares,
                    entry.sums.clusters);
}

double StratumUnions::Variance(uint32_t number, std::span<const Share> shares) const {
  const Union& row = unions_[number];
  const Vcpu& entry = vcpus_[row.vcpu];
  double residues = row.sums.xx;
  for (const Share& a : shares) {
    if (a.stratum < row.xn.size()) residues -= 2 * a.share * row.xn[a.stratum];
    for (const Share& b : shares) {
      residues += a.share * b.share * entry.At(a.stratum, b.stratum);
    }
  }
  return OfClusters(residues, entry.sums.clusters);
}

}  // namespace xenoscope::correlate
