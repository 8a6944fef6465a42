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

double ShareVariance(const ClusterSums& row, const ClusterTotals& stratum) {
  if (stratum.n <= 0) return 0;
  const double p = std::clamp(row.x / stratum.n, 0.0, 1.0);
  const double independent = p * (1 - p) / stratum.n;
  if (stratum.clusters < 2) return independent;
  const auto m = static_cast<double>(stratum.clusters);
  const double residues = row.xx - 2 * p * row.xn + p * p * stratum.nn;
  const double clustered = (residues * m / (m - 1) + row.open) / (stratum.n * stratum.n);
  return std::max(independent, clustered);
}

Interval IntervalOf(double share, double variance, double samples) {
  const double p = std::clamp(share, 0.0, 1.0);
  const double spread = p * (1 - p);
  const double n = variance > 0 && spread > 0 ? spread / variance : samples;
  return Wilson(p, n);
}

}  // namespace xenoscope::correlate
