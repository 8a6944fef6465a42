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

// How many runs a thread is given at least: what is done with each takes some microseconds.
constexpr size_t kRunsAtOnce = 1;

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
    size_t number = begins[i];
    tracks[i]->ForEachEntry([&](const IntervalTrack::Entry& entry) {
      const size_t place = number++ % distance;
      if (place >= extent.run) return;
      if (place == 0 || of_tracks[i].empty())
        of_tracks[i].emplace_back().reserve(extent.run - place);
      of_tracks[i].back().push_back(entry);
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

TrackSample::Size TrackSample::SizeOf(std::span<const IntervalTrack::Entry> run,
                                      ShortIntervals together) {
  size_t entries = 0;
  size_t bytes = 0;
  uint64_t end = run.front().begin;
  IntervalTrack::ForEachThinned(run, together, [&](const IntervalTrack::Entry& entry) {
    ++entries;
    bytes += IntervalTrack::BytesOf(entry, end, together.shift);
    end = entry.end;
  });
  return {static_cast<double>(entries), static_cast<double>(bytes)};
}

TrackSample::Size TrackSample::SizeByFirst(size_t parts, ShortIntervals together) const {
  std::vector<Size> sizes(runs_.size());
  ForEachInParallel(runs_.size(), kRunsAtOnce, [&](size_t i) {
    const auto run = std::span(runs_[i]).first((runs_[i].size() + parts - 1) / parts);
    const double weight =
        weight_ * static_cast<double>(runs_[i].size()) / static_cast<double>(run.size());
    const Size size = SizeOf(run, together);
    sizes[i] = {weight * size.entries, weight * size.column_bytes};
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
  std::vector<IntervalTrack> thinned;
  thinned.reserve(runs_.size());
  for (size_t i = 0; i < runs_.size(); i += every) thinned.emplace_back(together.shift);
  ForEachInParallel(thinned.size(), kRunsAtOnce, [&](size_t i) {
    for (const IntervalTrack::Entry& entry : runs_[i * every]) thinned[i].Append(entry, together);
  });
  std::vector<std::string> columns(thinned.size());
  for (size_t i = 0; i < thinned.size(); ++i) {
    for (const NumberColumn& column : thinned[i].Finish()) columns[i] += column.bytes();
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const double ratio, PackedRatio({columns.begin(), columns.end()}));
  return PackedSize{ratio * bytes, ratio};
}

}  // namespace xenoscope::report
