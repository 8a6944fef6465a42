#include "sampler/drain_timer.h"

#include <algorithm>

namespace xenoscope::sampler {
namespace {

using std::chrono::nanoseconds;

// The part of a buffer that drains aim to find used: it leaves room for a burst, and for a recorder
// that is not scheduled in time.
constexpr double kTargetFill = 0.25;
// Limit of the growth of the interval from drain to drain, after a burst.
constexpr double kGrowthFactor = 1.1;
constexpr double kOverflowFill = 0.95;
constexpr double kBackoffFactor = 0.5;
// Limit of the part of time that drains take: the processor is for the guests.
constexpr double kMaxCost = 0.25;
constexpr double kEwmaWeight = 0.1;
constexpr nanoseconds kMinInterval = std::chrono::microseconds(200);
constexpr nanoseconds kFirst = std::chrono::milliseconds(1);
// Limit of the interval: a longer one has no advantage, and sums stay far from overflow.
constexpr nanoseconds kMaxInterval = std::chrono::seconds(10);

nanoseconds Times(nanoseconds time, double factor) {
  const double product = static_cast<double>(time.count()) * factor;
  return nanoseconds(
      static_cast<int64_t>(std::min(product, static_cast<double>(kMaxInterval.count()))));
}

}  // namespace

void DrainTimer::Start(Clock::time_point now) {
  last_ = now;
  safe_interval_ = kFirst;
  due_ = now + std::min(requested_interval_, safe_interval_);
}

void DrainTimer::Drained(Clock::time_point begin, Clock::time_point end, double fill) {
  // A full buffer may have been full for long, so its rate is not known.
  safe_interval_ = Times(safe_interval_, fill > kOverflowFill ? kBackoffFactor : kGrowthFactor);
  if (fill > 0) safe_interval_ = std::min(safe_interval_, Times(begin - last_, kTargetFill / fill));
  last_ = begin;
  mean_cost_ = Times(mean_cost_, 1 - kEwmaWeight) + Times(end - begin, kEwmaWeight);
  const nanoseconds affordable = Times(mean_cost_, (1 - kMaxCost) / kMaxCost);
  due_ = end + std::max(std::min(std::max(requested_interval_, affordable), safe_interval_),
                        kMinInterval);
}

}  // namespace xenoscope::sampler
