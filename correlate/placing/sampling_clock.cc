#include "correlate/placing/sampling_clock.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace xenoscope::correlate {
namespace {

// What is learnt is looked at after so many lengths.
constexpr size_t kUpdateEvery = 16;
// Lengths and errors that are needed, and the part of lengths that has to fit.
constexpr size_t kMinLengths = 64;
constexpr size_t kMinOfKind = 16;
constexpr double kMinFitting = 0.8;
// A length fits that differs from whole periods by less than this part of one. Those of samples
// that are not even do by a chance of twice this.
constexpr double kTolerance = 1.0 / 256;
constexpr double kMedian = 0.5;
// The part of the errors that are below the one that counts.
constexpr double kErrorQuantile = 0.98;
// How far the offset may be from the true one: the end of a gap is known to two bins.
constexpr double kOffsetError = 2.0 * NmiOffsetEstimator::kBin;
// Between two NMI exits that are further apart the clock is not relied on.
constexpr size_t kMaxPeriods = 64;

}  // namespace

void RecentNumbers::Add(double number) {
  if (numbers_.size() < most_) {
    numbers_.push_back(number);
    return;
  }
  numbers_[next_] = number;
  next_ = (next_ + 1) % most_;
}

double RecentNumbers::Quantile(double part) const {
  std::vector<double> sorted = numbers_;
  const auto index = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(index, sorted.size() - 1));
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

double RecentNumbers::Mean() const {
  const double sum = std::accumulate(numbers_.begin(), numbers_.end(), 0.0);
  return numbers_.empty() ? 0 : sum / static_cast<double>(numbers_.size());
}

void SamplingClock::LearnPeriod(Cycles length, size_t in_xen) {
  const auto cycles = static_cast<double>(length);
  if (in_xen == 0) {
    after_guest_.Add(cycles);
  } else if (guest_period_ > 0) {
    after_xen_.Add((cycles - guest_period_) / static_cast<double>(in_xen));
  }
  if (guest_period_ > 0) {
    const double expected = guest_period_ + static_cast<double>(in_xen) * xen_period_;
    fits_.Add(std::abs(cycles - expected) < kTolerance * guest_period_ ? 1 : 0);
  }
  if (++learnt_ % kUpdateEvery == 0) Update();
}

void SamplingClock::Update() {
  if (after_guest_.size() < kMinOfKind) return;
  guest_period_ = after_guest_.Quantile(kMedian);
  xen_period_ = after_xen_.size() < kMinOfKind ? guest_period_ : after_xen_.Quantile(kMedian);
  even_ = fits_.size() >= kMinLengths && fits_.Mean() >= kMinFitting && xen_period_ > 0;
  offset_.reset();
  if (!even_ || errors_.size() < kMinLengths) return;
  error_ = errors_.Quantile(kErrorQuantile) + kOffsetError;
  const std::optional<NmiOffset> found = offsets_.Estimate();
  // Where the error is larger than the gap, the gap says nothing.
  if (found && error_ < static_cast<double>(found->handler)) offset_ = found;
}

std::optional<size_t> SamplingClock::PeriodsIn(Cycles length) const {
  if (!even_) return std::nullopt;
  const double further = (static_cast<double>(length) - guest_period_) / xen_period_;
  const double periods = std::round(further);
  if (periods < 0 || periods >= static_cast<double>(kMaxPeriods)) return std::nullopt;
  if (std::abs(further - periods) >= kTolerance) return std::nullopt;
  return 1 + static_cast<size_t>(periods);
}

double SamplingClock::InstantIn(Cycles length, size_t periods, size_t k) const {
  if (k == 0) return 0;
  const auto all = static_cast<double>(periods);
  const auto count = static_cast<double>(k);
  const double drift = static_cast<double>(length) - guest_period_ - (all - 1) * xen_period_;
  return guest_period_ + (count - 1) * xen_period_ + drift * count / all;
}

void SamplingClock::LearnError(Cycles before, size_t periods_before, Cycles after,
                               size_t periods_after) {
  const size_t periods = periods_before + periods_after;
  if (periods == 2) return;  // no sample in Xen is between two exits that follow each other
  // The period after the exit is that of a guest, too.
  const double more = guest_period_ - xen_period_;
  const double all = static_cast<double>(before + after) - more;
  const double drift = all - guest_period_ - static_cast<double>(periods - 1) * xen_period_;
  const double part = static_cast<double>(periods_before) / static_cast<double>(periods);
  const double predicted =
      guest_period_ + static_cast<double>(periods_before - 1) * xen_period_ + drift * part;
  errors_.Add(std::abs(static_cast<double>(before) - predicted));
}

}  // namespace xenoscope::correlate
