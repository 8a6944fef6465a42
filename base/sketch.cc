#include "base/sketch.h"

#include <algorithm>
#include <cmath>

namespace xenoscope {

uint64_t Sketch::Middle(int octave, int bucket) {
  const auto low = static_cast<uint64_t>(bucket);
  if (octave == 0) return low;
  const int shift = octave - 1;
  const uint64_t first = ((uint64_t{1} << kBits) | low) << shift;
  return first + ((uint64_t{1} << shift) - 1) / 2;
}

void Sketch::Merge(const Sketch& other) {
  for (size_t i = 0; i < octaves_.size(); ++i) {
    if (other.octaves_[i] == nullptr) continue;
    if (octaves_[i] == nullptr) octaves_[i] = std::make_unique<Octave>();
    for (size_t b = 0; b < octaves_[i]->size(); ++b) (*octaves_[i])[b] += (*other.octaves_[i])[b];
  }
  total_ += other.total_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

uint64_t Sketch::Percentile(double p) const {
  if (total_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::floor(p * static_cast<double>(total_)));
  uint64_t passed = 0;
  for (int octave = 0; octave <= kOctaves; ++octave) {
    if (octaves_[static_cast<size_t>(octave)] == nullptr) continue;
    for (int bucket = 0; bucket < 1 << kBits; ++bucket) {
      passed += (*octaves_[static_cast<size_t>(octave)])[static_cast<size_t>(bucket)];
      if (passed > wanted) return std::clamp(Middle(octave, bucket), min_, max_);
    }
  }
  return max_;
}

}  // namespace xenoscope
