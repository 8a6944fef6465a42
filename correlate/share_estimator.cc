#include "correlate/share_estimator.h"

#include <algorithm>
#include <cmath>

#include "absl/container/btree_map.h"

namespace xenoscope::correlate {
namespace {

// Sampled and traced shares disagree if they differ by more than this many standard errors: one
// false alarm in some hundreds.
constexpr double kDisagreement = 3;
// The smallest difference that is one, as a part of the domain's own time: the trace's own records
// take time that is in no stratum.
constexpr double kMinDisagreement = 0.03;

// What the trace of one host measured of the strata that have samples.
struct Measured {
  double cycles = 0;
  double samples = 0;
};

// Sets the size of a stratum that no trace measures by its samples, each of which stands for `rate`
// cycles. Lost time is at most what the pCPUs spent in it, if that is known.
void SizeBySamples(const Measured& measured, Stratum& stratum) {
  const bool lost = stratum.context.kind == ContextKind::kLost;
  const double rate =
      lost && measured.cycles > 0 ? measured.cycles / measured.samples : stratum.period;
  const double max_size = lost ? stratum.size : 0;
  const double by_samples = stratum.totals.n * rate;
  stratum.size = max_size > 0 ? std::min(max_size, by_samples) : by_samples;
  stratum.size_variance = 0;
  if (stratum.totals.n <= 0) return;
  const double busy = max_size > 0 ? stratum.size / max_size : 0;
  const double cluster_size = stratum.totals.nn / stratum.totals.n;  // mean, by sample
  const double of_rate = lost && measured.samples > 0 ? 1 / measured.samples : 0;
  stratum.size_variance =
      stratum.size * stratum.size * ((1 - busy) * cluster_size / stratum.totals.n + of_rate);
}

}  // namespace

bool DomainCheck::Agrees() const {
  return std::abs(sampled - traced) <= std::max(kDisagreement * error, kMinDisagreement * traced);
}

StratumSizes SizeStrata(Strata& strata) {
  absl::flat_hash_map<DomainId, bool> sampled;
  absl::flat_hash_map<uint32_t, Measured> measured;  // by host
  StratumSizes sizes;
  for (const Stratum& stratum : strata.all) {
    if (stratum.totals.n <= 0 || !IsTraced(stratum.context.kind)) continue;
    sampled[stratum.vcpu.domain] = true;
    Measured& host = measured[stratum.host];
    host.cycles += stratum.size;
    host.samples += stratum.totals.n;
    sizes.measured = sizes.measured || host.cycles > 0;
  }
  for (Stratum& stratum : strata.all) {
    if (!IsTraced(stratum.context.kind)) {
      SizeBySamples(measured[stratum.host], stratum);
      sizes.variance += stratum.size_variance;
    }
    if (stratum.totals.n > 0) {
      sizes.cycles += stratum.size;
    } else if (sampled.contains(stratum.vcpu.domain)) {
      sizes.unsampled += stratum.size;
    }
  }
  return sizes;
}

std::vector<DomainCheck> CheckDomains(std::span<const Stratum> strata,
                                      const absl::flat_hash_map<VcpuRef, double>& cluster_squares) {
  struct Sums {
    double samples = 0;
    double cycles = 0;
    double squares = 0;
  };
  // In the order of domains: the last digits of sums depend on their order.
  absl::btree_map<DomainId, Sums> domains;
  for (const Stratum& stratum : strata) {
    if (!IsTraced(stratum.context.kind)) continue;
    Sums& sums = domains[stratum.vcpu.domain];
    sums.samples += stratum.totals.n;
    sums.cycles += stratum.size;
  }
  const absl::btree_map<VcpuRef, double> ordered(cluster_squares.begin(), cluster_squares.end());
  for (const auto& [vcpu, squares] : ordered) {
    if (const auto of = domains.find(vcpu.domain); of != domains.end()) {
      of->second.squares += squares;
    }
  }
  absl::erase_if(domains, [](const auto& entry) { return entry.second.samples <= 0; });
  Sums all;
  for (const auto& [domain, sums] : domains) {
    all.samples += sums.samples;
    all.cycles += sums.cycles;
    all.squares += sums.squares;
  }
  std::vector<DomainCheck> checks;
  if (all.cycles <= 0) return checks;
  for (const auto& [domain, sums] : domains) {
    const double p = sums.samples / all.samples;
    const double others = all.squares - sums.squares;
    const double variance =
        ((1 - p) * (1 - p) * sums.squares + p * p * others) / (all.samples * all.samples);
    checks.push_back({domain, p, sums.cycles / all.cycles, std::sqrt(variance)});
  }
  return checks;
}

ShareEstimator::Factors ShareEstimator::UnionFactors(std::span<const Part* const> parts) const {
  absl::flat_hash_map<uint32_t, UnionSums> unions;
  for (const Part* part : parts) {
    if (part->union_number == StratumUnions::kNone) continue;
    const Stratum& stratum = strata_.all[part->stratum];
    UnionSums& sums = unions[part->union_number];
    const double share = part->sums.x / stratum.totals.n;
    const double squared = stratum.size * stratum.size;
    sums.shares.push_back({stratum.of_vcpu, share});
    sums.samples += part->sums.x;
    sums.cycles += stratum.size * share;
    sums.alone += squared * ShareVariance(part->sums, stratum.totals);
    sums.independent += squared * share * (1 - share) / stratum.totals.n;
  }
  Factors factors;
  for (const auto& [number, sums] : unions) {
    if (sums.shares.size() < 2 || sums.samples <= 0 || sums.alone <= 0) continue;
    factors[number] = std::max(UnionVariance(number, sums), sums.independent) / sums.alone;
  }
  return factors;
}

// The variance of the cycles that the row has in the union.
double ShareEstimator::UnionVariance(uint32_t number, const UnionSums& sums) const {
  const double rate = sums.cycles / sums.samples;  // cycles for each sample
  const double all = strata_.unions.SamplesOfVcpu(number);
  const double share = sums.samples / all;
  const double variance = std::min(strata_.unions.Variance(number, sums.shares),
                                   strata_.unions.PlainVariance(number, share));
  // A few samples that are all alike prove nothing: one lower limit for all strata together.
  const double min_variance = all * all * IndependentVariance({}, {all, 0, 0});
  return rate * rate * std::max(variance, min_variance);
}

double ShareEstimator::VarianceOf(const Part& part, bool exact, const Factors& factors) const {
  const Stratum& stratum = strata_.all[part.stratum];
  const bool known = exact && IsTraced(stratum.context.kind);
  const double variance = known ? 0 : ShareVariance(part.sums, stratum.totals);
  const auto factor = factors.find(part.union_number);
  return factor == factors.end() ? variance : variance * factor->second;
}

double ShareEstimator::TransitionVariance(std::span<const Part* const> parts, bool exact) const {
  absl::btree_map<VcpuRef, double> stays;
  for (const Part* part : parts) {
    const Stratum& stratum = strata_.all[part->stratum];
    const double share = exact ? 1 : part->sums.x / stratum.totals.n;
    if (stratum.context.kind == ContextKind::kTransition) {
      stays[stratum.vcpu] += stratum.stays * share;
    } else if (stratum.context.kind == ContextKind::kGuest) {
      stays[stratum.vcpu] -= stratum.stays * share;
    }
  }
  return stays.empty() ? 0 : strata_.transitions.Variance(stays);
}

RowPart ShareEstimator::RowPartOf(const Part& part, double variance) const {
  const Stratum& stratum = strata_.all[part.stratum];
  const double of_all = sizes_.cycles > 0 ? stratum.size / sizes_.cycles : 0;
  return {
      .vcpu = stratum.vcpu,
      .context = stratum.context,
      .samples = part.sums.x,
      .stratum_samples = stratum.totals.n,
      .clusters = stratum.totals.clusters,
      .stratum_cycles = stratum.size,
      .variance = of_all * of_all * variance,
  };
}

void ShareEstimator::Estimate(std::span<const Part* const> parts, bool exact,
                              ProfileRow& row) const {
  if (parts.empty()) {  // samples of other events alone
    row.variance = IndependentVariance({}, {options_.samples, 0, 0});
    row.interval = IntervalOf(0, row.variance, options_.samples);
    return;
  }
  PostStratified estimate;
  double unmeasured = 0;          // sums over unmeasured strata: the row's share of the stratum
  double squared_unmeasured = 0;  // times the variance of the stratum's size; the same, squared
  const Factors factors = UnionFactors(parts);
  for (const Part* part : parts) {
    const Stratum& stratum = strata_.all[part->stratum];
    const double share = part->sums.x / stratum.totals.n;
    const double variance = VarianceOf(*part, exact, factors);
    row.samples += part->sums.x;
    estimate.Add(stratum.size, share, variance);
    unmeasured += share * stratum.size_variance;
    squared_unmeasured += share * share * stratum.size_variance;
    if (options_.with_parts) row.parts.push_back(RowPartOf(*part, variance));
  }
  const double cycles = sizes_.cycles;
  if (cycles > 0) {
    row.share = estimate.total() / cycles;
    // If such a stratum is larger than estimated, shares move towards those in it: the variance
    // gets (p_r - share)^2 times that of the size.
    const double moved =
        squared_unmeasured - 2 * row.share * unmeasured + row.share * row.share * sizes_.variance;
    double variance = estimate.variance() + std::max(moved, 0.0);
    variance += TransitionVariance(parts, exact);
    row.variance = variance / (cycles * cycles);
    row.interval = IntervalOf(row.share, row.variance, options_.samples);
  }
  if (options_.is_time) row.cycles = estimate.total();
}

}  // namespace xenoscope::correlate
