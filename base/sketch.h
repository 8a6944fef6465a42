// Computes percentiles in one pass and bounded memory.
//
// The buckets of the histogram are 1/64 of an octave wide (exact below 128), as in HdrHistogram. A
// percentile is the middle of its bucket: at most 1/128 (0.8 %) off, and never outside the smallest
// and largest value seen. Memory: 128 bytes for each octave between the smallest and the largest
// value, twice or four times that once a bucket's weight needs more than 16 or 32 bits. A report
// has thousands of sketches, which the processor's caches hold only if they are small.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace xenoscope {

// The weight of a length in percentiles: 1, or the length itself ("half of the time was in
// intervals of at least this").
enum class Weighting : uint8_t { kByCount, kByTime };

// Counts weights by value.
class Sketch {
 public:
  // O(1); allocates when a value's octave is new, or its bucket's weight outgrows the buckets.
  void Add(uint64_t value, uint64_t weight) {
    const size_t bucket = BucketOf(value);
    while (!Fits(bucket, weight)) MakeRoom(bucket, weight);
    total_ += weight;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  // Add values with the weights of the weighting: faster than one by one.
  void AddAll(std::span<const uint32_t> values, Weighting weighting);
  void AddAll(std::span<const uint64_t> values, Weighting weighting);
  void Merge(const Sketch& other);

  [[nodiscard]] uint64_t total() const { return total_; }
  // The largest value; 0 when empty.
  [[nodiscard]] uint64_t max() const { return max_; }

  // Returns the value at or below which the fraction `p` of the weight lies, p in [0, 1]; 0 when
  // empty. The relative error is at most 1/128.
  [[nodiscard]] uint64_t Percentile(double p) const;

 private:
  static constexpr int kBits = 6;  // 64 buckets an octave
  static constexpr size_t kBuckets = size_t{1} << kBits;
  // Returns the number of the value's bucket. Values below 64 have one each, which is the octave 0;
  // from there on each doubling is an octave.
  static size_t BucketOf(uint64_t value) {
    // The place of the highest bit, from 0 on: what std::bit_width does takes more instructions.
    const int highest = 63 ^ std::countl_zero(value | kBuckets);
    const auto shift = static_cast<size_t>(highest - kBits);
    return shift * kBuckets + (value >> shift);
  }
  // Returns the value in the middle of a bucket.
  [[nodiscard]] static uint64_t Middle(size_t bucket);

  // Returns the index of the bucket; not below octaves_ * kBuckets if there is none.
  [[nodiscard]] size_t IndexOf(size_t bucket) const {
    return bucket - size_t{first_octave_} * kBuckets;
  }
  // Adds the weight to a bucket of the type Bucket; returns false, and adds nothing, if it has no
  // room for the sum.
  template <typename Bucket>
  bool AddTo(size_t index, uint64_t weight) {
    std::byte* const at = buckets_.get() + index * sizeof(Bucket);
    const uint64_t sum = LoadUnchecked<Bucket>(at) + weight;
    const auto stored = static_cast<Bucket>(sum);
    if (stored != sum) [[unlikely]] {
      return false;
    }
    std::memcpy(at, &stored, sizeof stored);
    return true;
  }
  // Adds the weight; returns false, and adds nothing, if there is no room.
  bool Fits(size_t bucket, uint64_t weight) {
    const size_t index = IndexOf(bucket);
    if (index >= octaves_ * kBuckets) return false;
    switch (bucket_bytes_) {
      case sizeof(uint16_t):
        return AddTo<uint16_t>(index, weight);
      case sizeof(uint32_t):
        return AddTo<uint32_t>(index, weight);
      default:
        return AddTo<uint64_t>(index, weight);
    }
  }
  // Adds values until one finds no room; returns how many were added.
  template <typename Bucket, typename Value>
  size_t AddFitting(std::span<const Value> values, Weighting weighting);
  template <typename Value>
  void AddEach(std::span<const Value> values, Weighting weighting);
  [[nodiscard]] uint64_t WeightAt(size_t index) const;
  void MakeRoom(size_t bucket, uint64_t weight);
  // Makes the buckets those of these octaves, of which there may be more than now, with so many
  // bytes each.
  void Resize(uint32_t first_octave, uint32_t octaves, uint8_t bucket_bytes);

  uint64_t total_ = 0;
  uint64_t min_ = std::numeric_limits<uint64_t>::max();
  uint64_t max_ = 0;
  // Weights of the octaves from first_octave_ on, numbers of bucket_bytes_ bytes.
  std::unique_ptr<std::byte[]> buckets_;
  uint32_t first_octave_ = 0;
  uint16_t octaves_ = 0;
  uint8_t bucket_bytes_ = sizeof(uint16_t);
};

}  // namespace xenoscope
