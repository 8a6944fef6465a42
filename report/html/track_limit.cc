#include "report/html/track_limit.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"

namespace xenoscope::report {
namespace {

// Where all intervals are shown together that there can be: 16 of these are years.
constexpr uint64_t kLongest = uint64_t{1} << 56U;

// The unit of times where there are too many bytes: 2^8 cycles, a tenth of a microsecond.
constexpr unsigned kCoarseShift = 8;
// Columns whose estimate is so many times what is wanted are longer, however wrong the estimate is.
constexpr double kSurelyLonger = 1.1;
// Where columns are this many times as long as is wanted, they are made so many times as long
// first: those that are left compress differently.
constexpr double kFirstStep = 1.5;

// The least and the most of the entries that are left at once of those that there may be.
constexpr double kLeastTarget = 0.125;
constexpr double kMostTarget = 0.75;

// Parts of TrackLimit::Limits: while intervals come (ThinTo), passes are many and their result is
// not the last one; for the page (ThinToBytes), bytes that are left would show more. Intervals of
// one kind have similar lengths.
constexpr uint64_t kCoarseParts = 4;
constexpr uint64_t kFineParts = 8;

std::vector<IntervalTrack*> TracksOf(TrackLimit::ForEachTrack all) {
  std::vector<IntervalTrack*> tracks;
  all([&tracks](IntervalTrack& track) { tracks.push_back(&track); });
  return tracks;
}

// Returns the first of the limits that is enough, which is near `guess`; the last one where none
// is. Those behind one that is enough are enough, too.
template <std::predicate<uint64_t> IsEnough>
uint64_t FirstEnough(const std::vector<uint64_t>& limits,
                     std::vector<uint64_t>::const_iterator guess, const IsEnough& is_enough) {
  if (guess != limits.end() && is_enough(*guess)) {
    while (guess != limits.begin() && is_enough(*std::prev(guess))) --guess;
    return *guess;
  }
  while (guess != limits.end() && !is_enough(*guess)) ++guess;
  return guess == limits.end() ? limits.back() : *guess;
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
  if (entries_ > most_) ThinTo(Target(), all);
}

size_t TrackLimit::Target() const {
  const double part = std::clamp(part_come_, kLeastTarget, kMostTarget);
  return static_cast<size_t>(part * static_cast<double>(most_));
}

bool TrackLimit::IsLeast() const { return entries_ == 0 || together_.below >= kLongest; }

absl::Status TrackLimit::Gather(ForEachTrack all) {
  if (gathered_) return absl::OkStatus();
  packed_ = {.unit = uint64_t{1} << together_.shift, .together_below = together_.below};
  columns_.clear();
  entries_ = 0;
  all([&](IntervalTrack& track) {
    for (const NumberColumn& column : track.Finish()) {
      packed_.bytes.push_back(column.bytes().size());
      columns_ += column.bytes();
    }
    entries_ += track.entries();
  });
  if (columns_.size() <= kPackedPiece) {
    XENOSCOPE_ASSIGN_OR_RETURN(packed_.packed, Packed(columns_));
    ratio_ = static_cast<double>(packed_.packed.size()) /
             static_cast<double>(std::max<size_t>(columns_.size(), 1));
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(ratio_, PackedRatio(columns_));
  }
  gathered_ = true;
  return absl::OkStatus();
}

bool TrackLimit::AreLonger(double most_bytes) const {
  return static_cast<double>(columns_.size()) * ratio_ > most_bytes && !IsLeast();
}

absl::Status TrackLimit::Prepare(size_t most_bytes, ForEachTrack all) {
  const double surely = kSurelyLonger * static_cast<double>(most_bytes);
  XENOSCOPE_RETURN_IF_ERROR(Gather(all));
  if (together_.shift < kCoarseShift && AreLonger(surely)) {
    Coarsen(all);
    XENOSCOPE_RETURN_IF_ERROR(Gather(all));
  }
  if (!shapes_ && AreLonger(surely)) shapes_.emplace(TracksOf(all));
  return absl::OkStatus();
}

absl::Status TrackLimit::Fit(size_t most_bytes, ForEachTrack all) {
  const auto most = static_cast<double>(most_bytes);
  for (double longer = kSurelyLonger;;) {
    XENOSCOPE_RETURN_IF_ERROR(Prepare(most_bytes, all));
    if (packed_.packed.empty() && AreLonger(longer * most)) {
      ThinToBytes((AreLonger(kFirstStep * most) ? kFirstStep : 1) * most / ratio_, all);
      longer = 1;  // some is left out in any case
      continue;
    }
    if (packed_.packed.empty()) {
      XENOSCOPE_ASSIGN_OR_RETURN(packed_.packed, Packed(columns_));
    }
    if (packed_.packed.size() <= most_bytes || IsLeast()) return absl::OkStatus();
    if (together_.shift < kCoarseShift) {
      Coarsen(all);
    } else {
      const auto bytes = static_cast<double>(columns_.size());
      ThinToBytes(most * bytes / static_cast<double>(packed_.packed.size()), all);
    }
  }
}

std::vector<uint64_t> TrackLimit::Limits(uint64_t parts) const {
  std::vector<uint64_t> limits;
  // From a fraction of a microsecond on.
  uint64_t below = std::max<uint64_t>(together_.below, 512);
  do {
    below = std::min(kLongest, below + below / parts);
    limits.push_back(below);
  } while (below < kLongest);
  return limits;
}

void TrackLimit::Thin(ForEachTrack all) {
  gathered_ = false;
  shapes_.reset();
  const std::vector<IntervalTrack*> tracks = TracksOf(all);
  ForEachInParallel(tracks.size(), 1, [&](size_t i) { tracks[i]->Thin(together_); });
  entries_ = 0;
  for (const IntervalTrack* track : tracks) entries_ += track->entries();
}

void TrackLimit::Coarsen(ForEachTrack all) {
  together_.shift = kCoarseShift;
  Thin(all);
}

void TrackLimit::ThinTo(size_t most, ForEachTrack all) {
  IntervalTrack::Lengths lengths{};
  all([&lengths](const IntervalTrack& track) { track.CountLengths(lengths); });
  // No more entries than these become fewer, whatever is beside them.
  const auto may_be_enough = [&, entries = entries_](uint64_t below) {
    const auto end = lengths.begin() + std::bit_width(below) + 1;
    return below == kLongest || entries <= most + std::accumulate(lengths.begin(), end, size_t{0});
  };
  for (const uint64_t below : Limits(kCoarseParts)) {
    if (!may_be_enough(below)) continue;
    together_.below = below;
    Thin(all);
    if (entries_ <= most) return;
  }
}

void TrackLimit::ThinToBytes(double most, ForEachTrack all) {
  const std::vector<uint64_t> limits = Limits(kFineParts);
  if (!shapes_) shapes_.emplace(TracksOf(all));
  const auto bytes = static_cast<double>(columns_.size());
  // The estimate is as wrong now as it will be.
  const auto is_enough = [&](const auto& estimate) {
    const double at_most = most / bytes * estimate(together_.below);
    return [estimate, at_most](uint64_t below) { return estimate(below) <= at_most; };
  };
  const auto by_sample =
      is_enough([this](uint64_t below) { return shapes_->SampledBytesIfThinned(below); });
  const auto by_all = is_enough([this](uint64_t below) { return shapes_->BytesIfThinned(below); });
  const auto guess = std::partition_point(limits.begin(), limits.end(), std::not_fn(by_sample));
  together_.below = FirstEnough(limits, guess, by_all);
  Thin(all);
}

}  // namespace xenoscope::report
