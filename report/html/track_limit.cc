#include "report/html/track_limit.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"

namespace xenoscope::report {
namespace {

// Where all intervals are shown together that there can be: 16 of these are years.
constexpr uint64_t kLongest = uint64_t{1} << 56U;

// The unit of times where there are too many bytes: 2^8 cycles, a tenth of a microsecond.
constexpr unsigned kCoarseShift = 8;
// What is estimated to be less than this many times what is wanted may be small enough.
constexpr double kSurelyLonger = 1.1;

// The least and the most of the entries that are left at once of those that there may be.
constexpr double kLeastTarget = 0.125;
constexpr double kMostTarget = 0.75;

// Parts of TrackLimit::FirstEnough: while intervals come (ThinTo), their result is not the last
// one; for the page (ThinToBytes), bytes that are left would show more. Intervals of one kind have
// similar lengths.
constexpr uint64_t kCoarseParts = 4;
constexpr uint64_t kFineParts = 8;

size_t ColumnBytes(TrackLimit::ForEachTrack all) {
  size_t bytes = 0;
  all([&bytes](IntervalTrack& track) {
    for (const NumberColumn& column : track.Finish()) bytes += column.bytes().size();
  });
  return bytes;
}

std::vector<IntervalTrack*> TracksOf(TrackLimit::ForEachTrack all) {
  std::vector<IntervalTrack*> tracks;
  all([&tracks](IntervalTrack& track) { tracks.push_back(&track); });
  return tracks;
}

}  // namespace

nlohmann::ordered_json PackedTracks::ToJson() const {
  return {{"packed", packed}, {"bytes", bytes}, {"unit", unit}, {"together_below", together_below}};
}

void TrackLimit::AddEntry(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin,
                          uint64_t length, ForEachTrack all) {
  entries_ -= track.entries();
  track.Add(code, part, begin, length, together_);
  entries_ += track.entries();
  while (entries_ > most_ && !IsLeast()) ThinTo(Target(), all);
}

size_t TrackLimit::Target() const {
  const double part = std::clamp(part_come_, kLeastTarget, kMostTarget);
  return static_cast<size_t>(part * static_cast<double>(most_));
}

bool TrackLimit::IsLeast() const { return entries_ == 0 || together_.below >= kLongest; }

absl::Status TrackLimit::Fit(size_t most_bytes, ForEachTrack all) {
  // Packed, columns are hardly ever longer: gzip saves more than base64 costs.
  if (!is_packed_ && ColumnBytes(all) <= most_bytes) XENOSCOPE_RETURN_IF_ERROR(Pack(all));
  if (is_packed_ && packed_.packed.size() <= most_bytes) return absl::OkStatus();
  const TrackSample sample(TracksOf(all), TrackSample::kToPack);
  // The bytes by those of the estimate, which is wrong in the same way again.
  double by_estimate = 1;
  do {
    XENOSCOPE_ASSIGN_OR_RETURN(
        const double estimate,
        ThinToBytes(static_cast<double>(most_bytes) / by_estimate, sample, all));
    if (!is_packed_) XENOSCOPE_RETURN_IF_ERROR(Pack(all));
    by_estimate = static_cast<double>(packed_.packed.size()) / estimate;
  } while (packed_.packed.size() > most_bytes && !IsLeast());
  return absl::OkStatus();
}

absl::StatusOr<double> TrackLimit::ThinToBytes(double most, const TrackSample& sample,
                                               ForEachTrack all) {
  const ShortIntervals before = together_;
  XENOSCOPE_ASSIGN_OR_RETURN(TrackSample::PackedSize size, sample.PackedSizeIfThinned(together_));
  for (double longer = is_packed_ ? 1 : kSurelyLonger; size.bytes > longer * most && !IsLeast();) {
    if (together_.shift < kCoarseShift) {
      together_.shift = kCoarseShift;
    } else {
      const double most_bytes = most / size.ratio;
      together_.below = FirstEnough(kFineParts, [&sample, most_bytes](ShortIntervals together) {
        return sample.RoughSizeIfThinned(together).column_bytes <= most_bytes;
      });
      longer = 1;  // some is left out in any case
    }
    XENOSCOPE_ASSIGN_OR_RETURN(size, sample.PackedSizeIfThinned(together_));
  }
  if (together_ != before) Thin(all);
  return size.bytes;
}

absl::Status TrackLimit::Pack(ForEachTrack all) {
  packed_ = {.unit = uint64_t{1} << together_.shift, .together_below = together_.below};
  std::string columns;
  entries_ = 0;
  all([&](IntervalTrack& track) {
    for (const NumberColumn& column : track.Finish()) {
      packed_.bytes.push_back(column.bytes().size());
      columns += column.bytes();
    }
    entries_ += track.entries();
  });
  XENOSCOPE_ASSIGN_OR_RETURN(packed_.packed, Packed(columns));
  is_packed_ = true;
  return absl::OkStatus();
}

void TrackLimit::ThinTo(size_t most, ForEachTrack all) {
  const TrackSample sample(TracksOf(all), TrackSample::kToCount);
  together_.below = FirstEnough(kCoarseParts, [&sample, most](ShortIntervals together) {
    return sample.SizeIfThinned(together).entries <= static_cast<double>(most);
  });
  Thin(all);
}

template <std::predicate<ShortIntervals> IsEnough>
uint64_t TrackLimit::FirstEnough(uint64_t parts, const IsEnough& is_enough) const {
  std::vector<uint64_t> limits;
  // From a fraction of a microsecond on.
  for (uint64_t below = std::max<uint64_t>(together_.below, 512); below < kLongest;) {
    below = std::min(kLongest, below + below / parts);
    limits.push_back(below);
  }
  const auto found = std::ranges::partition_point(limits, [&](uint64_t below) {
    return !is_enough(ShortIntervals{below, together_.shift});
  });
  return found == limits.end() ? kLongest : *found;
}

void TrackLimit::Thin(ForEachTrack all) {
  is_packed_ = false;
  const std::vector<IntervalTrack*> tracks = TracksOf(all);
  ForEachInParallel(tracks.size(), 1, [&](size_t i) { tracks[i]->Thin(together_); });
  entries_ = 0;
  for (const IntervalTrack* track : tracks) entries_ += track->entries();
}

}  // namespace xenoscope::report
