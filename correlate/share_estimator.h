// From the sums of strata and rows to shares with their variances (docs/method.md, sections 4
// and 5).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "correlate/profile_result.h"
#include "correlate/profile_sums.h"
#include "correlate/stratum_unions.h"

namespace xenoscope::correlate {

// The sizes of all strata together, in cycles.
struct StratumSizes {
  bool measured = false;  // a trace measured strata
  double cycles = 0;      // in strata that have samples
  double unsampled = 0;   // of the same domains, in strata without a sample
  double variance = 0;    // the variance of the size of all strata that no trace measured
};

// Sets the sizes of strata that no trace measures to the cycles that their samples stand for: in
// lost time as many for each as for the samples of the host's measured strata, else the period.
// O(strata).
[[nodiscard]] StratumSizes SizeStrata(Strata& strata);

// Compares each domain's share of the samples with its share of the traced time. `cluster_squares`
// has for each vCPU the sum of the squares of the samples in its clusters. In the order of domains.
// O(strata).
[[nodiscard]] std::vector<DomainCheck> CheckDomains(
    std::span<const Stratum> strata, const absl::flat_hash_map<VcpuRef, double>& cluster_squares);

class ShareEstimator {
 public:
  struct Options {
    double samples = 0;       // all attributed samples
    bool is_time = true;      // the event counts time
    bool with_parts = false;  // rows say what they have of each stratum
  };
  // `strata`, which have their sizes, outlive the estimator.
  ShareEstimator(const Strata& strata, const StratumSizes& sizes, const Options& options)
      : strata_(strata), sizes_(sizes), options_(options) {}

  // Sets the row's samples, share, variance, interval, cycles and parts from its parts in strata.
  // `exact`: the row is a union of whole strata, whose sizes the trace knows but for transitions.
  // O(parts^2) at most.
  void Estimate(std::span<const Part* const> parts, bool exact, ProfileRow& row) const;

 private:
  // What the parts of a row have in the strata of one vCPU.
  struct UnionSums {
    std::vector<StratumUnions::Share> shares;
    double samples = 0;
    double cycles = 0;
    double alone = 0;        // the variance of the cycles, if the strata were independent
    double independent = 0;  // the same, if all samples were
  };
  // By union of the row: the factor by which the variances of its strata are multiplied, as these
  // are not independent of each other.
  using Factors = absl::flat_hash_map<uint32_t, double>;

  [[nodiscard]] Factors UnionFactors(std::span<const Part* const> parts) const;
  [[nodiscard]] double UnionVariance(uint32_t number, const UnionSums& sums) const;
  // The variance of the row's cycles that the costs of transitions add: what a row has of them it
  // does not have of the guests' time.
  [[nodiscard]] double TransitionVariance(std::span<const Part* const> parts, bool exact) const;
  // The variance of the part's share of its stratum.
  [[nodiscard]] double VarianceOf(const Part& part, bool exact, const Factors& factors) const;
  [[nodiscard]] RowPart RowPartOf(const Part& part, double variance) const;

  const Strata& strata_;
  StratumSizes sizes_;
  Options options_;
};

}  // namespace xenoscope::correlate
