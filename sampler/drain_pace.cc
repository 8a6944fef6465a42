#include "sampler/drain_pace.h"

#include <algorithm>

namespace xenoscope::sampler {
namespace {

using std::chrono::nanoseconds;

// A buffer that is this full at a drain holds four times of what came: room for a burst, and for a
// recorder that is not scheduled in time.
constexpr double kFull = 0.25;
// After a burst the interval grows by no more than this at each drain.
constexpr double kGrowth = 1.1;
constexpr double kOverrun = 0.95;
constexpr double kRetreat = 0.5;
// Drains take no more than this part of the time; a guest's processor is not ours to use.
constexpr double kMostCost = 0.25;
constexpr double kWeightOfLast = 0.1;
constexpr nanoseconds kLeast = std::chrono::microseconds(200);
constexpr nanoseconds kFirst = std::chrono::milliseconds(1);
// Beyond it nothing is gained, and sums stay far from overflow.
constexpr nanoseconds kMost = std::chrono::seconds(10);

nanoseconds Times(nanoseconds time, double factor) {
  const double product = static_cast<double>(time.count()) * factor;
  return nanoseconds(static_cast<int64_t>(std::min(product, static_cast<double>(kMost.count()))));
}

}  // namespace

void DrainPace::Start(Clock::time_point now) {
  last_ = now;
  holds_ = kFirst;
  due_ = now + std::min(wanted_, holds_);
}

void DrainPace::Drained(Clock::time_point begin, Clock::time_point end, double fill) {
  // A buffer that is full may have been so for long: how often it would have been filled, nobody
  // knows.
  holds_ = Times(holds_, fill > kOverrun ? kRetreat : kGrowth);
  if (fill > 0) holds_ = std::min(holds_, Times(begin - last_, kFull / fill));
  last_ = begin;
  cost_ = Times(cost_, 1 - kWeightOfLast) + Times(end - begin, kWeightOfLast);
  const nanoseconds affordable = Times(cost_, (1 - kMostCost) / kMostCost);
  due_ = end + std::max(std::min(std::max(wanted_, affordable), holds_), kLeast);
}

}  // namespace xenoscope::sampler
