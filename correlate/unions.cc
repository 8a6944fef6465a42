#include "correlate/unions.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

// A sum of squared residues of so many clusters, as the variance of their sum.
double OfClusters(double residues, uint64_t clusters) {
  if (clusters < 2) return 0;
  const auto m = static_cast<double>(clusters);
  return std::max(residues, 0.0) * m / (m - 1);
}

}  // namespace

uint32_t Unions::NumberOf(VcpuRef vcpu) {
  const auto [at, is_new] = vcpu_index_.try_emplace(vcpu, static_cast<uint32_t>(vcpus_.size()));
  if (is_new) vcpus_.emplace_back();
  return at->second;
}

uint32_t Unions::AddStratum(VcpuRef vcpu) {
  Vcpu& of = vcpus_[NumberOf(vcpu)];
  if (of.strata == kMostStrata) return kNone;
  of.nn.resize(Triangle(of.strata, of.strata) + 1);
  return of.strata++;
}

uint32_t Unions::Of(uint32_t row, VcpuRef vcpu) {
  const uint32_t number = NumberOf(vcpu);
  const auto [at, is_new] =
      index_.try_emplace(uint64_t{row} << 32 | number, static_cast<uint32_t>(unions_.size()));
  if (is_new) unions_.push_back({number, 0, 0, {}});
  return at->second;
}

void Unions::AddCluster(VcpuRef vcpu, std::span<const Amount> strata,
                        std::span<const Amount> unions) {
  Vcpu& of = vcpus_[NumberOf(vcpu)];
  ++of.clusters;
  double all = 0;
  for (const Amount& n : strata) all += n.samples;
  of.samples += all;
  of.squares += all * all;
  for (size_t i = 0; i < strata.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      of.At(strata[i].number, strata[j].number) += strata[i].samples * strata[j].samples;
    }
  }
  for (const Amount& x : unions) {
    Union& row = unions_[x.number];
    row.xx += x.samples * x.samples;
    row.xn_all += x.samples * all;
    row.xn.resize(of.strata);
    for (const Amount& n : strata) row.xn[n.number] += x.samples * n.samples;
  }
}

double Unions::PlainVariance(uint32_t number, double share) const {
  const Union& row = unions_[number];
  const Vcpu& of = vcpus_[row.vcpu];
  return OfClusters(row.xx - 2 * share * row.xn_all + share * share * of.squares, of.clusters);
}

double Unions::Variance(uint32_t number, std::span<const Share> shares) const {
  const Union& row = unions_[number];
  const Vcpu& of = vcpus_[row.vcpu];
  double residues = row.xx;
  for (const Share& a : shares) {
    if (a.stratum < row.xn.size()) residues -= 2 * a.share * row.xn[a.stratum];
    for (const Share& b : shares) {
      residues += a.share * b.share * of.At(a.stratum, b.stratum);
    }
  }
  return OfClusters(residues, of.clusters);
}

}  // namespace xenoscope::correlate
