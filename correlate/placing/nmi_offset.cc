#include "correlate/placing/nmi_offset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace xenoscope::correlate {
namespace {

// The part of the usual number of instants that there may be in the gap, as some are predicted
// wrongly.
constexpr double kWrong = 0.01;
// The least log-likelihood ratio of a gap: there are some 2^17 possible ones.
constexpr double kEvidence = 25;
// The log-likelihood ratio of one sample where Xen ran, to one where it did not: the latter ones
// are in transitions.
constexpr double kInXen = 3;

}  // namespace

void NmiOffsetEstimator::AddInXen(Cycles begin, Cycles end) {
  const Cycles from = std::min(begin, kLongest) / kBin;
  const Cycles to = std::min(end, kLongest) / kBin;
  ++in_xen_.at(from);
  --in_xen_.at(to);
}

std::optional<NmiOffset> NmiOffsetEstimator::Estimate() const {
  const auto all = std::accumulate(records_.begin(), records_.end(), 0.0);
  const double usual = all / static_cast<double>(kBins);
  // The best gap that ends with the bin at hand: the largest sum of log-likelihood ratios.
  double gap = 0;
  size_t gap_begin = 0;
  int64_t in_xen = 0;
  double best = -1;
  double best_gap = 0;
  NmiOffset found;
  for (size_t bin = 0; bin < kBins; ++bin) {
    in_xen += in_xen_.at(bin);
    if (gap <= 0) {
      gap = 0;
      gap_begin = bin;
    }
    gap += (1 - kWrong) * usual + static_cast<double>(records_.at(bin)) * std::log(kWrong);
    // The offset is the end of this bin.
    const double score = gap + kInXen * static_cast<double>(in_xen + in_xen_.at(bin + 1));
    if (gap <= kEvidence || score <= best) continue;
    best = score;
    best_gap = gap;
    found = {(bin + 1) * kBin, (bin + 1 - gap_begin) * kBin};
  }
  if (best_gap <= kEvidence) return std::nullopt;
  return found;
}

}  // namespace xenoscope::correlate
