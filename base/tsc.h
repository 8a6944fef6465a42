// The clock of all data: the host's time-stamp counter (TSC), in cycles. Only output is in seconds.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace xenoscope {

// A number of cycles: a length of time, never an instant.
using Cycles = uint64_t;

// An instant: the value of the host's TSC.
struct Tsc {
  uint64_t value = 0;
  constexpr auto operator<=>(const Tsc&) const = default;
};

inline constexpr Tsc operator+(Tsc t, Cycles c) { return {t.value + c}; }
// Returns the cycles from b to a; 0 when a is not later than b.
inline constexpr Cycles operator-(Tsc a, Tsc b) { return a > b ? a.value - b.value : 0; }

// A half-open range of instants, [begin, end). Empty when end <= begin.
struct TscRange {
  Tsc begin;
  Tsc end;

  constexpr bool operator==(const TscRange&) const = default;
  [[nodiscard]] constexpr bool Empty() const { return end <= begin; }
  [[nodiscard]] constexpr Cycles Length() const { return end - begin; }
  [[nodiscard]] constexpr bool Contains(Tsc t) const { return begin <= t && t < end; }
  [[nodiscard]] constexpr TscRange Intersect(TscRange other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

// Where the host's frequency is known from. Every figure in seconds depends on it.
enum class ClockSource : uint8_t {
  kGiven,      // the user said it
  kRecorded,   // the recording holds what Xen reported
  kEstimated,  // from records that state both nanoseconds and cycles
  kAssumed,    // nothing known: kAssumedHz
};

inline constexpr uint64_t kAssumedHz = 2'400'000'000;  // what xenalyze assumes

struct Clock {
  uint64_t hz = kAssumedHz;
  ClockSource source = ClockSource::kAssumed;

  [[nodiscard]] constexpr double Seconds(Cycles cycles) const {
    return static_cast<double>(cycles) / static_cast<double>(hz);
  }
  // Returns the length in whole nanoseconds, rounded down once: no rounding errors add up.
  [[nodiscard]] constexpr uint64_t Nanoseconds(Cycles cycles) const {
    if (hz == 0) return 0;
    const uint64_t whole = cycles / hz;
    const uint64_t rest = cycles % hz;
    __extension__ using Wide = unsigned __int128;
    return whole * 1'000'000'000 +
           static_cast<uint64_t>(static_cast<Wide>(rest) * 1'000'000'000 / hz);
  }
};

// "given", "recorded", "estimated", "assumed".
[[nodiscard]] constexpr const char* ToString(ClockSource source) {
  switch (source) {
    case ClockSource::kGiven:
      return "given";
    case ClockSource::kRecorded:
      return "recorded";
    case ClockSource::kEstimated:
      return "estimated";
    case ClockSource::kAssumed:
      return "assumed";
  }
  return "?";
}

}  // namespace xenoscope
