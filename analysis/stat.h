// Count, sum and percentiles of lengths of time, in one pass and bounded memory.
//
// Percentiles come from a histogram whose buckets are 1/64 of an octave wide (exact below 128), the
// layout of HdrHistogram: the value told is the middle of its bucket, so at most 1/128 (0.8 %) off,
// and never outside the smallest and largest value seen. Memory: 512 bytes an octave touched.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/tsc.h"

namespace xenoscope::analysis {

// Counts weights by value; the weight is 1 for percentiles over events, or the length itself for
// percentiles over time ("half of the time was in intervals of at least this").
class Sketch {
 public:
  // O(1); allocates when a value's octave is new.
  void Add(uint64_t value, uint64_t weight) {
    const Place place = Locate(value);
    auto& octave = octaves_[place.octave];
    if (octave == nullptr) [[unlikely]] {
      octave = std::make_unique<Octave>();
    }
    (*octave)[place.bucket] += weight;
    total_ += weight;
    if (value < least_) least_ = value;
    if (value > most_) most_ = value;
  }
  void Merge(const Sketch& other);

  // The value at or below which the fraction `p` of the weight lies, p in [0, 1]; 0 when empty.
  // Relative error at most 1/128.
  uint64_t Percentile(double p) const;

 private:
  static constexpr int kBits = 6;  // 64 buckets an octave
  static constexpr int kOctaves = 64 - kBits;
  using Octave = std::array<uint64_t, 1 << kBits>;
  struct Place {
    int octave;
    int bucket;
  };
  static Place Locate(uint64_t value) {
    // Values below 64 are octave 0; then each doubling is one octave of 64 buckets.
    const auto width = static_cast<int>(std::bit_width(value | ((1U << kBits) - 1)));
    const int shift = width - kBits - (width > kBits ? 1 : 0);
    const int octave = width - kBits;
    return {octave, static_cast<int>((value >> shift) & ((1U << kBits) - 1))};
  }
  static uint64_t Middle(int octave, int bucket);

  uint64_t total_ = 0;
  uint64_t least_ = std::numeric_limits<uint64_t>::max();
  uint64_t most_ = 0;
  std::array<std::unique_ptr<Octave>, kOctaves + 1> octaves_;
};

enum class Weighting : uint8_t { kByCount, kByTime };

// What reports show of a set of lengths.
struct StatFigures {
  uint64_t count = 0;
  Cycles cycles = 0;
  Cycles p5 = 0;
  Cycles p50 = 0;
  Cycles p95 = 0;
};

// Lengths weighed alike, or each by itself (percentiles over time).
template <Weighting kWeighting>
class BasicStat {
 public:
  void Add(Cycles length) {
    ++count_;
    cycles_ += length;
    sketch_.Add(length, kWeighting == Weighting::kByTime ? length : 1);
  }
  void Merge(const BasicStat& other) {
    count_ += other.count_;
    cycles_ += other.cycles_;
    sketch_.Merge(other.sketch_);
  }

  uint64_t count() const { return count_; }
  Cycles cycles() const { return cycles_; }
  StatFigures Figures() const {
    return {count_, cycles_, sketch_.Percentile(0.05), sketch_.Percentile(0.5),
            sketch_.Percentile(0.95)};
  }

 private:
  uint64_t count_ = 0;
  Cycles cycles_ = 0;
  Sketch sketch_;
};

// Adds counts by place.
template <typename Counts>
void AddCounts(const Counts& more, Counts& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

using Stat = BasicStat<Weighting::kByCount>;
using TimeStat = BasicStat<Weighting::kByTime>;

}  // namespace xenoscope::analysis
