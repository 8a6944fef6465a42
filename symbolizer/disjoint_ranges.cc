#include "symbolizer/disjoint_ranges.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace xenoscope::symbolizer {

uint32_t DisjointRanges::Find(Address address) const {
  if (address < begin_of_hints_ || hints_.empty()) return kNoOwner;
  const uint64_t bucket = (address - begin_of_hints_) >> bucket_bits_;
  if (bucket + 1 >= hints_.size()) return kNoOwner;
  // The only branch of this binary search is its loop, which the processor predicts well.
  const Address* at = starts_.data() + hints_[bucket];
  size_t count = hints_[bucket + 1] - hints_[bucket] + 1;
  while (count > 1) {
    const size_t half = count / 2;
    at = at[half] <= address ? at + half : at;
    count -= half;
  }
  return owners_[static_cast<size_t>(at - starts_.data())];
}

void DisjointRanges::AppendStartsIn(Address begin, Address end,
                                    std::vector<Address>& starts) const {
  starts.insert(starts.end(), std::upper_bound(starts_.begin(), starts_.end(), begin),
                std::lower_bound(starts_.begin(), starts_.end(), end));
}

uint64_t DisjointRanges::MemoryUsed() const {
  return starts_.capacity() * sizeof(Address) +
         (owners_.capacity() + hints_.capacity()) * sizeof(uint32_t);
}

void RangeSweep::Begin(Address start, uint32_t owner) {
  if (ranges_.starts_.back() == start) {
    ranges_.owners_.back() = owner;
  } else if (ranges_.owners_.back() != owner) {
    ranges_.starts_.push_back(start);
    ranges_.owners_.push_back(owner);
  }
}

void RangeSweep::CloseUntil(Address address) {
  // When the top range ends, the next one below that has not ended holds what follows.
  while (!open_.empty() && open_.back().end <= address) {
    const Address ended = open_.back().end;
    while (!open_.empty() && open_.back().end <= ended) open_.pop_back();
    Begin(ended, open_.empty() ? DisjointRanges::kNoOwner : open_.back().owner);
  }
}

void RangeSweep::Open(Address start, Address end, uint32_t owner) {
  open_.push_back({end, owner});
  Begin(start, owner);
}

DisjointRanges RangeSweep::Finish() && {
  CloseUntil(kLastAddress);
  if (!ranges_.empty()) {
    // There is about one bucket for each range.
    const Address extent = ranges_.end() - ranges_.begin();
    const uint64_t buckets = std::bit_ceil(uint64_t{ranges_.starts_.size()});
    ranges_.begin_of_hints_ = ranges_.begin();
    ranges_.bucket_bits_ = std::max(0, static_cast<int>(std::bit_width(extent)) -
                                           static_cast<int>(std::bit_width(buckets)) + 1);
    uint32_t range = 0;
    const uint64_t last_bucket = extent >> ranges_.bucket_bits_;
    for (uint64_t bucket = 0; bucket <= last_bucket + 1; ++bucket) {
      const Address offset = bucket <= last_bucket ? bucket << ranges_.bucket_bits_ : extent;
      while (range + 1 < ranges_.starts_.size() &&
             ranges_.starts_[range + 1] - ranges_.begin() <= offset) {
        ++range;
      }
      ranges_.hints_.push_back(range);
    }
  }
  return std::move(ranges_);
}

DisjointRanges MakeDisjoint(std::vector<OwnedRange> ranges) {
  std::erase_if(
      ranges, [](const OwnedRange& range) { return range.begin == 0 || range.begin >= range.end; });
  std::sort(ranges.begin(), ranges.end(), [](const OwnedRange& a, const OwnedRange& b) {
    return std::tie(a.begin, a.owner) < std::tie(b.begin, b.owner);
  });
  RangeSweep sweep;
  for (const OwnedRange& range : ranges) {
    sweep.CloseUntil(range.begin);
    sweep.Open(range.begin, range.end, range.owner);
  }
  return std::move(sweep).Finish();
}

}  // namespace xenoscope::symbolizer
