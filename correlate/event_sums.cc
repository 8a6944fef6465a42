#include "correlate/event_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace xenoscope::correlate {
namespace {

// The variance of log(a / b) by linearisation over clusters: that of the sum of
// a_c / a - b_c / b, less n_c / n - m_c / m if these sums are known.
double ClusterVariance(const EventPair& pair) {
  if (pair.clusters < 2) return 0;
  const double a = 1 / pair.a;
  const double b = 1 / pair.b;
  double residues = a * a * pair.aa - 2 * a * b * pair.ab + b * b * pair.bb;
  if (pair.complete) {
    const double n = 1 / pair.n;
    const double m = 1 / pair.m;
    residues += n * n * pair.nn - 2 * n * m * pair.nm + m * m * pair.mm;
    residues -= 2 * (a * n * pair.an - a * m * pair.am - b * n * pair.bn + b * m * pair.bm);
  }
  const auto clusters = static_cast<double>(pair.clusters);
  return std::max(residues, 0.0) * clusters / (clusters - 1);
}

// The variance of log(x) of x independent samples, of `all` that are known to be there.
double IndependentLogVariance(double x, double all, bool complete) {
  const double part = complete ? std::clamp(x / all, 0.0, 1.0) : 0;
  // A counter's first and last period are not whole: no sum is known better than to a sample.
  return std::max((1 - part) / x, 1 / (x * x));
}

}  // namespace

double LogRatioVariance(const EventPair& pair) {
  const double independent = IndependentLogVariance(pair.a, pair.n, pair.complete) +
                             IndependentLogVariance(pair.b, pair.m, pair.complete);
  return std::max(ClusterVariance(pair), independent);
}

RatioEstimate EstimateRatio(const EventPair& pair, double scale) {
  // Weights of samples that have several places may sum to less than 0, by a little.
  const double a = std::max(pair.a, 0.0);
  const double b = std::max(pair.b, 0.0);
  const double all = a + b;
  if (all <= 0) return {};
  const double part = a / all;
  double effective = all;  // the number of independent samples that know as much
  if (a > 0 && b > 0) effective = 1 / (LogRatioVariance(pair) * part * (1 - part));
  const Interval interval = Wilson(part, effective);
  RatioEstimate estimate;
  if (b > 0) estimate.value = scale * a / b;
  estimate.low = scale * interval.low / (1 - interval.low);
  if (b > 0 && interval.high < 1) estimate.high = scale * interval.high / (1 - interval.high);
  return estimate;
}

EventSums::Sums EventSums::MakeSums() const {
  const size_t pairs = events_ * events_;
  return {std::vector<double>(events_), std::vector<double>(pairs), std::vector<double>(pairs),
          std::vector<double>(events_)};
}

void EventSums::Add(uint32_t row, size_t event, double samples) {
  while (rows_.size() <= row) rows_.push_back(MakeSums());
  Sums& sums = rows_[row];
  if (!std::exchange(sums.touched, true)) touched_.push_back(row);
  sums.in_cluster[event] += samples;
  all_.in_cluster[event] += samples;
}

void EventSums::AddCluster(Sums& sums) const {
  for (size_t i = 0; i < events_; ++i) {
    const double own = sums.in_cluster[i];
    sums.x[i] += own;
    for (size_t j = 0; j < events_; ++j) {
      sums.xx[i * events_ + j] += own * sums.in_cluster[j];
      sums.xn[i * events_ + j] += own * all_.in_cluster[j];
    }
  }
}

void EventSums::EndCluster() {
  if (touched_.empty()) return;
  ++clusters_;
  for (const uint32_t row : touched_) {
    AddCluster(rows_[row]);
    std::ranges::fill(rows_[row].in_cluster, 0);
    rows_[row].touched = false;
  }
  AddCluster(all_);
  std::ranges::fill(all_.in_cluster, 0);
  touched_.clear();
}

EventPair EventSums::PairOf(std::optional<uint32_t> row, const EventRatio& ratio) const {
  const size_t i = ratio.numerator;
  const size_t j = ratio.denominator;
  const auto at = [this](const std::vector<double>& sums, size_t first, size_t second) {
    return sums[first * events_ + second];
  };
  EventPair pair;
  pair.n = all_.x[i];
  pair.m = all_.x[j];
  pair.nn = at(all_.xx, i, i);
  pair.nm = at(all_.xx, i, j);
  pair.mm = at(all_.xx, j, j);
  pair.clusters = clusters_;
  if (row && *row >= rows_.size()) return pair;
  const Sums& of = row ? rows_[*row] : all_;
  pair.a = of.x[i];
  pair.b = of.x[j];
  pair.aa = at(of.xx, i, i);
  pair.ab = at(of.xx, i, j);
  pair.bb = at(of.xx, j, j);
  pair.an = at(of.xn, i, i);
  pair.am = at(of.xn, i, j);
  pair.bn = at(of.xn, j, i);
  pair.bm = at(of.xn, j, j);
  return pair;
}

}  // namespace xenoscope::correlate
