// Computes percentiles in one pass and bounded memory.
//
// The buckets of the histogram are 1/64 of an octave wide (exact below 128), as in HdrHistogram. A
// percentile is the middle of its bucket: at most 1/128 (0.8 %) off, and never outside the smallest
// and largest value seen. Memory: 512 bytes for each octave that has values.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>

namespace xenoscope {

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
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  void Merge(const Sketch& other);

  [[nodiscard]] uint64_t total() const { return total_; }
  // The largest value; 0 when empty.
  [[nodiscard]] uint64_t max() const { return max_; }

  // Returns the value at or below which the fraction `p` of the weight lies, p in [0, 1]; 0 when
  // empty. The relative error is at most 1/128.
  [[nodiscard]] uint64_t Percentile(double p) const;

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
  [[nodiscard]] static uint64_t Middle(int octave, int bucket);

  uint64_t total_ = 0;
  uint64_t min_ = std::numeric_limits<uint64_t>::max();
  uint64_t max_ = 0;
  std::array<std::unique_ptr<Octave>, kOctaves + 1> octaves_;
};

}  // namespace xenoscope
