#include "sampler/perf/perf_clock.h"

#include <algorithm>
#include <atomic>

namespace xenoscope::sampler {
namespace {

__extension__ using Wide = __int128;

// Limit of the distance between the page's conversion and a pair, by rounding and slow tracking of
// drift.
constexpr Cycles kTolerance = 100'000;
constexpr double kMaxDrift = 30e-6;

// Returns the value at `t` of the line through (t0, v0) and (t1, v1); t0 < t1.
uint64_t Interpolate(uint64_t t, uint64_t t0, uint64_t v0, uint64_t t1, uint64_t v1) {
  const Wide rise = Wide{v1} - Wide{v0};
  const Wide run = Wide{t1} - Wide{t0};
  const Wide value = Wide{v0} + rise * (Wide{t} - Wide{t0}) / run;
  return value < 0 ? 0 : static_cast<uint64_t>(value);
}

}  // namespace

void PerfClock::SetConversion(const perf_event_mmap_page& page) {
  // The kernel changes it under a sequence lock.
  for (int tries = 0; tries < 100; ++tries) {
    const auto lock = page.lock;
    std::atomic_thread_fence(std::memory_order_acquire);
    exact_ = page.cap_user_time_zero != 0 && page.time_mult != 0 && page.time_shift < 64;
    zero_ = page.time_zero;
    mult_ = page.time_mult;
    shift_ = page.time_shift;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (lock == page.lock && (lock & 1) == 0) return;
  }
  exact_ = false;
}

// Converts as linux/perf_event.h describes it beside time_zero.
std::optional<Tsc> PerfClock::FromPage(uint64_t time) const {
  if (!exact_ || time < zero_) return std::nullopt;
  const uint64_t since = time - zero_;
  const uint64_t quotient = since / mult_;
  const uint64_t rest = since % mult_;
  return Tsc{(quotient << shift_) + ((rest << shift_) / mult_)};
}

void PerfClock::AddPair(uint64_t time, TscRange tsc) {
  if (last_ && time <= last_->time) return;
  if (const std::optional<Tsc> by_page = FromPage(time)) {
    if (*by_page + kTolerance < tsc.begin || tsc.end + kTolerance < *by_page) agrees_ = false;
  }
  if (!first_) first_ = Pair{time, tsc};
  before_ = last_;
  last_ = Pair{time, tsc};
}

TscRange PerfClock::At(uint64_t time, Tsc now) const {
  if (IsExact()) {
    if (const std::optional<Tsc> at = FromPage(time)) return {*at, *at + 1};
  }
  const Tsc end = now + 1;
  if (!last_) return {Tsc{0}, end};
  if (time > last_->time) return {std::min(last_->tsc.begin, now), end};
  if (!before_) return {Tsc{0}, last_->tsc.end + 1};
  const Pair& a = *before_;
  const Pair& b = *last_;
  const Tsc begin{Interpolate(time, a.time, a.tsc.begin.value, b.time, b.tsc.begin.value)};
  const Tsc last{Interpolate(time, a.time, a.tsc.end.value, b.time, b.tsc.end.value)};
  const uint64_t way = time < b.time ? std::min(time - std::min(time, a.time), b.time - time) : 0;
  const double cycles_per_ns =
      static_cast<double>(b.tsc.begin - a.tsc.begin) / static_cast<double>(b.time - a.time);
  const auto bend = static_cast<Cycles>(kMaxDrift * static_cast<double>(way) * cycles_per_ns);
  const Tsc first = std::min(begin, last);
  return {Tsc{first.value - std::min(first.value, bend)}, std::max(begin, last) + bend + 1};
}

uint64_t PerfClock::Hz() const {
  if (!first_ || !last_ || last_->time <= first_->time) return 0;
  const Wide cycles = Wide{last_->tsc.begin.value} - Wide{first_->tsc.begin.value};
  const Wide hz = cycles * 1'000'000'000 / (Wide{last_->time} - Wide{first_->time});
  return hz < 0 ? 0 : static_cast<uint64_t>(hz);
}

}  // namespace xenoscope::sampler
