#include "base/sketch.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace xenoscope {

uint64_t Sketch::Middle(size_t bucket) {
  const size_t octave = bucket / kBuckets;
  if (octave == 0) return bucket;
  const size_t shift = octave - 1;
  const uint64_t first = uint64_t{kBuckets | bucket % kBuckets} << shift;
  return first + ((uint64_t{1} << shift) - 1) / 2;
}

uint64_t Sketch::WeightAt(size_t index) const {
  const std::byte* const at = buckets_.get() + index * bucket_bytes_;
  switch (bucket_bytes_) {
    case sizeof(uint16_t):
      return LoadUnchecked<uint16_t>(at);
    case sizeof(uint32_t):
      return LoadUnchecked<uint32_t>(at);
    default:
      return LoadUnchecked<uint64_t>(at);
  }
}

void Sketch::Resize(uint32_t first_octave, uint32_t octaves, uint8_t bucket_bytes) {
  Sketch larger;
  larger.first_octave_ = first_octave;
  larger.octaves_ = static_cast<uint16_t>(octaves);
  larger.bucket_bytes_ = bucket_bytes;
  larger.buckets_ = std::make_unique<std::byte[]>(octaves * kBuckets * bucket_bytes);
  const size_t before = octaves_ == 0 ? 0 : (first_octave_ - first_octave) * kBuckets;
  std::byte* const to = larger.buckets_.get() + before * bucket_bytes;
  if (bucket_bytes == bucket_bytes_) {
    if (octaves_ != 0) std::memcpy(to, buckets_.get(), octaves_ * kBuckets * bucket_bytes);
  } else {
    for (size_t i = 0; i < octaves_ * kBuckets; ++i) {
      const uint64_t weight = WeightAt(i);
      std::memcpy(to + i * bucket_bytes, &weight, bucket_bytes);
    }
  }
  larger.total_ = total_;
  larger.min_ = min_;
  larger.max_ = max_;
  *this = std::move(larger);
}

void Sketch::MakeRoom(size_t bucket, uint64_t weight) {
  const auto octave = static_cast<uint32_t>(bucket / kBuckets);
  const uint32_t first = octaves_ == 0 ? octave : std::min(first_octave_, octave);
  const uint32_t end = std::max(octaves_ == 0 ? 0 : first_octave_ + octaves_, octave + 1);
  const size_t index = IndexOf(bucket);
  const uint64_t sum = weight + (index < octaves_ * kBuckets ? WeightAt(index) : 0);
  uint8_t bytes = bucket_bytes_;
  while (bytes < sizeof(uint64_t) && sum >> (8 * bytes) != 0)
    bytes = static_cast<uint8_t>(bytes * 2);
  Resize(first, end - first, bytes);
}

template <typename Bucket, typename Value>
size_t Sketch::AddFitting(std::span<const Value> values, Weighting weighting) {
  uint64_t total = 0;
  uint64_t min = min_;
  uint64_t max = max_;
  const size_t buckets = octaves_ * kBuckets;
  size_t added = 0;
  for (; added < values.size(); ++added) {
    const uint64_t value = values[added];
    const uint64_t weight = weighting == Weighting::kByTime ? value : 1;
    const size_t index = IndexOf(BucketOf(value));
    if (index >= buckets || !AddTo<Bucket>(index, weight)) [[unlikely]] {
      break;
    }
    total += weight;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  total_ += total;
  min_ = min;
  max_ = max;
  return added;
}

template <typename Value>
void Sketch::AddEach(std::span<const Value> values, Weighting weighting) {
  for (;;) {
    size_t added = 0;
    switch (bucket_bytes_) {
      case sizeof(uint16_t):
        added = AddFitting<uint16_t>(values, weighting);
        break;
      case sizeof(uint32_t):
        added = AddFitting<uint32_t>(values, weighting);
        break;
      default:
        added = AddFitting<uint64_t>(values, weighting);
        break;
    }
    values = values.subspan(added);
    if (values.empty()) return;
    MakeRoom(BucketOf(values[0]), weighting == Weighting::kByTime ? values[0] : 1);
  }
}

void Sketch::AddAll(std::span<const uint32_t> values, Weighting weighting) {
  AddEach(values, weighting);
}

void Sketch::AddAll(std::span<const uint64_t> values, Weighting weighting) {
  AddEach(values, weighting);
}

void Sketch::Merge(const Sketch& other) {
  if (other.octaves_ == 0) return;
  const uint32_t first =
      octaves_ == 0 ? other.first_octave_ : std::min(first_octave_, other.first_octave_);
  const uint32_t end =
      std::max(octaves_ == 0 ? 0 : first_octave_ + octaves_, other.first_octave_ + other.octaves_);
  if (end - first > octaves_ || other.bucket_bytes_ > bucket_bytes_) {
    Resize(first, end - first, std::max(bucket_bytes_, other.bucket_bytes_));
  }
  for (size_t i = 0; i < other.octaves_ * kBuckets; ++i) {
    const uint64_t weight = other.WeightAt(i);
    if (weight == 0) continue;
    const size_t bucket = other.first_octave_ * kBuckets + i;
    while (!Fits(bucket, weight)) MakeRoom(bucket, weight);
  }
  total_ += other.total_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

uint64_t Sketch::Percentile(double p) const {
  if (total_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::floor(p * static_cast<double>(total_)));
  uint64_t passed = 0;
  for (size_t i = 0; i < octaves_ * kBuckets; ++i) {
    passed += WeightAt(i);
    if (passed > wanted) {
      return std::clamp(Middle(first_octave_ * kBuckets + i), min_, max_);
    }
  }
  return max_;
}

}  // namespace xenoscope
