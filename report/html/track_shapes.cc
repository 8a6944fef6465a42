#include "report/html/track_shapes.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/parallel.h"

namespace xenoscope::report {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

// The entries of a piece. What is shown together ends with it, which is not so in the track: so few
// entries more change no estimate.
constexpr size_t kPiece = size_t{1} << 13U;

// One entry of so many is in a sample: the first ones of each piece.
constexpr size_t kSampled = 8;

// Returns a bit for each part that the entry has time of.
uint8_t PartsOf(const IntervalTrack::Entry& entry) {
  uint32_t parts = 0;
  if (entry.head != 0) {
    if (entry.part() != TrackPart::kNone) parts = 1U << static_cast<unsigned>(entry.part());
  } else {
    for (size_t i = 0; i < kTrackParts; ++i) parts |= (entry.parts.at(i) > 0 ? 1U : 0U) << i;
  }
  return static_cast<uint8_t>(parts);
}

}  // namespace

TrackShapes::Track TrackShapes::ShapeOf(const IntervalTrack& track) {
  const unsigned shift = track.shift();
  Track shape{.shift = shift};
  shape.entries.reserve(track.entries());
  size_t intervals = 0;
  size_t bytes = 0;
  track.ForEachEntry([&](const IntervalTrack::Entry& entry, uint64_t end_before) {
    const bool overlaps = entry.begin < end_before;
    const uint64_t gap = overlaps ? kMost : (entry.begin - end_before) >> shift;
    const uint64_t length = (entry.end - entry.begin) >> shift;
    shape.entries.push_back({static_cast<uint32_t>(std::min(gap, kMost)),
                             static_cast<uint32_t>(std::min(length, kMost)), entry.head == 0,
                             PartsOf(entry)});
    if (entry.head == 0) return;
    ++intervals;
    bytes += BytesOf(entry.head);
  });
  if (intervals > 0) shape.head_bytes = static_cast<double>(bytes) / static_cast<double>(intervals);
  return shape;
}

TrackShapes::TrackShapes(std::span<IntervalTrack* const> tracks) : tracks_(tracks.size()) {
  ForEachInParallel(tracks.size(), 1, [&](size_t i) { tracks_[i] = ShapeOf(*tracks[i]); });
  size_t entries = 0;
  size_t sampled = 0;
  for (const Track& track : tracks_) {
    for (std::span<const Entry> rest = track.entries; !rest.empty();) {
      const size_t count = std::min(rest.size(), kPiece);
      const size_t in_sample = (count + kSampled - 1) / kSampled;
      pieces_.push_back({&track, rest.first(count)});
      sample_.push_back({&track, rest.first(in_sample)});
      entries += count;
      sampled += in_sample;
      rest = rest.subspan(count);
    }
  }
  if (sampled > 0)
    entries_by_sampled_ = static_cast<double>(entries) / static_cast<double>(sampled);
}

double TrackShapes::BytesIfThinned(uint64_t below) const { return Bytes(pieces_, below); }

double TrackShapes::SampledBytesIfThinned(uint64_t below) const {
  return entries_by_sampled_ * Bytes(sample_, below);
}

double TrackShapes::Bytes(std::span<const Piece> pieces, uint64_t below) {
  std::vector<double> bytes(pieces.size());
  ForEachInParallel(pieces.size(), 1, [&](size_t i) { bytes[i] = PieceBytes(pieces[i], below); });
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

double TrackShapes::PieceBytes(const Piece& piece, uint64_t below) {
  const unsigned shift = piece.track->shift;
  const uint64_t limit = (below + (uint64_t{1} << shift) - 1) >> shift;  // in units
  const uint64_t longest = ShortIntervals{.below = below}.Longest() >> shift;
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
      const size_t with_time = (parts & 1U) + (parts >> 1U & 1U) + (parts >> 2U & 1U);
      bytes += 1 + BytesOf(count) + with_time * BytesOf(length) + (kTrackParts - with_time);
    } else {
      ++intervals;
    }
  };
  for (const Entry& entry : piece.entries) {
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
  return static_cast<double>(bytes) + piece.track->head_bytes * static_cast<double>(intervals);
}

}  // namespace xenoscope::report
