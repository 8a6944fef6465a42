#include "report/html/track_shape.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace xenoscope::report {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

// Returns a bit for each part that the entry has time of.
uint8_t PartsOf(const IntervalTrack::Entry& entry) {
  uint32_t parts = 0;
  if (entry.head != 0) {
    const uint64_t part = (entry.head - 1) & 3U;
    if (part < kTrackParts) parts = 1U << part;
  } else {
    for (size_t i = 0; i < kTrackParts; ++i) parts |= (entry.parts.at(i) > 0 ? 1U : 0U) << i;
  }
  return static_cast<uint8_t>(parts);
}

}  // namespace

TrackShape::TrackShape(const IntervalTrack& track) : shift_(track.shift()) {
  entries_.reserve(track.entries());
  size_t intervals = 0;
  size_t bytes = 0;
  track.ForEachEntry([&](const IntervalTrack::Entry& entry, uint64_t end_before) {
    const bool overlaps = entry.begin < end_before;
    const uint64_t gap = overlaps ? kMost : (entry.begin - end_before) >> shift_;
    const uint64_t length = (entry.end - entry.begin) >> shift_;
    entries_.push_back({static_cast<uint32_t>(std::min(gap, kMost)),
                        static_cast<uint32_t>(std::min(length, kMost)), entry.head == 0,
                        PartsOf(entry)});
    if (entry.head == 0) return;
    ++intervals;
    bytes += BytesOf(entry.head);
  });
  if (intervals > 0) head_bytes_ = static_cast<double>(bytes) / static_cast<double>(intervals);
}

double TrackShape::BytesIfThinned(uint64_t below) const {
  const uint64_t limit = (below + (uint64_t{1} << shift_) - 1) >> shift_;  // in units
  const uint64_t longest = ShortIntervals{.below = below}.Longest() >> shift_;
  size_t intervals = 0;
  size_t bytes = 0;
  // What is open, as in IntervalTrack.
  uint64_t gap = 0;
  uint64_t length = 0;
  uint64_t count = 0;
  bool is_several = false;
  uint8_t parts = 0;
  const auto write = [&] {
    bytes += BytesOf(2 * gap) + BytesOf(length);
    if (is_several) {
      const auto with_time = static_cast<size_t>(std::popcount(parts));
      bytes += 1 + BytesOf(count) + with_time * BytesOf(length) + (kTrackParts - with_time);
    } else {
      ++intervals;
    }
  };
  for (const Entry& entry : entries_) {
    const bool is_short = entry.is_several || entry.length < limit;
    const uint64_t joined = length + entry.gap + entry.length;
    if (is_short && count > 0 && entry.gap < limit && joined <= longest) {
      length = joined;
      is_several = true;
      parts |= entry.parts;
      ++count;
      continue;
    }
    if (count > 0) write();
    gap = entry.gap;
    length = entry.length;
    is_several = entry.is_several;
    parts = entry.parts;
    count = 1;
    if (is_short) continue;
    write();
    count = 0;
  }
  if (count > 0) write();
  return static_cast<double>(bytes) + head_bytes_ * static_cast<double>(intervals);
}

}  // namespace xenoscope::report
