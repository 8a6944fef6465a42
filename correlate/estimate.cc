#include "correlate/estimate.h"

#include <algorithm>
#include <cmath>

namespace xenoscope::correlate {

Interval Wilson(double share, double n) {
  if (n <= 0) return {};
  const double zz = kNormal95 * kNormal95;
  const double centre = share + zz / (2 * n);
  const double spread = kNormal95 * std::sqrt(share * (1 - share) / n + zz / (4 * n * n));
  const double scale = 1 + zz / n;
  return {std::clamp((centre - spread) / scale, 0.0, 1.0),
          std::clamp((centre + spread) / scale, 0.0, 1.0)};
}

double IndependentVariance(const ClusterSums& row, const ClusterTotals& stratum) {
  const double n = stratum.n;
  if (n <= 0) return 0;
  const double p = std::clamp(row.x / n, 0.0, 1.0);
  const double zz = kNormal95 * kNormal95;
  const double shrunk = (row.x + zz / 2) / (n + zz);
  return std::max(p * (1 - p) / n, shrunk * (1 - shrunk) / (n + zz));
}

double ShareVariance(const ClusterSums& row, const ClusterTotals& stratum) {
  const double variance = IndependentVariance(row, stratum);
  if (stratum.n <= 0 || stratum.clusters < 2) return variance;
  const double p = std::clamp(row.x / stratum.n, 0.0, 1.0);
  const auto m = static_cast<double>(stratum.clusters);
  const double residues = row.xx - 2 * p * row.xn + p * p * stratum.nn;
  return std::max(variance, residues / (stratum.n * stratum.n) * m / (m - 1));
}

Interval IntervalOf(double share, double variance, double samples) {
  const double p = std::clamp(share, 0.0, 1.0);
  if (variance <= 0) return {p, p};
  const double spread = p * (1 - p);
  if (spread <= 0) return Wilson(p, samples);
  // A share of almost 0 has a variance too: as if so many samples had been seen, and none of them
  // were of the row (method.md §5.3).
  const double none = kNormal95 / std::sqrt(8 * variance);
  return Wilson(p, std::max(spread / variance, none));
}

}  // namespace xenoscope::correlate
