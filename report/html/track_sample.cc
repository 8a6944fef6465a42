#include "report/html/track_sample.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "report/html/packed.h"

namespace xenoscope::report {
namespace {

// The bytes of columns that are packed to learn how well they compress: several times what deflate
// looks back at.
constexpr double kPackedSample = 512e3;

// Returns the entries, which follow each other, as a track in which they are shown together.
IntervalTrack Thinned(std::span<const IntervalTrack::Entry> entries, ShortIntervals together) {
  IntervalTrack track(together.shift);
  for (const IntervalTrack::Entry& entry : entries) track.Append(entry, together);
  track.Finish();
  return track;
}

size_t ColumnBytes(IntervalTrack& track) {
  size_t bytes = 0;
  for (const NumberColumn& column : track.Finish()) bytes += column.bytes().size();
  return bytes;
}

}  // namespace

TrackSample::TrackSample(std::span<IntervalTrack* const> tracks, Extent extent) {
  // Entries are numbered through all tracks: those of runs are in [0, run) modulo the distance.
  std::vector<size_t> begins{0};
  begins.reserve(tracks.size() + 1);
  for (const IntervalTrack* track : tracks) begins.push_back(begins.back() + track->entries());
  const size_t all = begins.back();
  const size_t distance = extent.run * std::max<size_t>(1, (all + extent.all - 1) / extent.all);
  std::vector<std::vector<Run>> of_tracks(tracks.size());
  ForEachInParallel(tracks.size(), 1, [&](size_t i) {
    std::vector<Run>& runs = of_tracks[i];
    size_t left = tracks[i]->entries();
    size_t place = begins[i] % distance;
    tracks[i]->ForEachEntry([&](const IntervalTrack::Entry& entry) {
      if (place < extent.run) {
        if (place == 0 || runs.empty())
          runs.emplace_back().reserve(std::min(extent.run - place, left));
        runs.back().push_back(entry);
      }
      --left;
      if (++place == distance) place = 0;
    });
  });
  size_t sampled = 0;
  for (std::vector<Run>& runs : of_tracks) {
    for (Run& run : runs) {
      sampled += run.size();
      runs_.push_back(std::move(run));
    }
  }
  if (sampled > 0) weight_ = static_cast<double>(all) / static_cast<double>(sampled);
}

TrackSample::Size TrackSample::SizeByFirst(size_t parts, ShortIntervals together) const {
  std::vector<Size> sizes(runs_.size());
  ForEachInParallel(runs_.size(), 1, [&](size_t i) {
    const auto run = std::span(runs_[i]).first((runs_[i].size() + parts - 1) / parts);
    const double weight =
        weight_ * static_cast<double>(runs_[i].size()) / static_cast<double>(run.size());
    IntervalTrack track = Thinned(run, together);
    sizes[i] = {weight * static_cast<double>(track.entries()),
                weight * static_cast<double>(ColumnBytes(track))};
  });
  Size sum;
  for (const Size& size : sizes) {
    sum.entries += size.entries;
    sum.column_bytes += size.column_bytes;
  }
  return sum;
}

TrackSample::Size TrackSample::SizeIfThinned(ShortIntervals together) const {
  return SizeByFirst(1, together);
}

TrackSample::Size TrackSample::RoughSizeIfThinned(ShortIntervals together) const {
  return SizeByFirst(4, together);
}

absl::StatusOr<TrackSample::PackedSize> TrackSample::PackedSizeIfThinned(
    ShortIntervals together) const {
  const double bytes = SizeIfThinned(together).column_bytes;
  // One run of so many is packed.
  const auto every = static_cast<size_t>(1 + bytes / weight_ / kPackedSample);
  std::vector<std::string> columns((runs_.size() + every - 1) / every);
  ForEachInParallel(columns.size(), 1, [&](size_t i) {
    IntervalTrack track = Thinned(runs_[i * every], together);
    for (const NumberColumn& column : track.Finish()) columns[i] += column.bytes();
  });
  XENOSCOPE_ASSIGN_OR_RETURN(const double ratio, PackedRatio({columns.begin(), columns.end()}));
  return PackedSize{ratio * bytes, ratio};
}

}  // namespace xenoscope::report
