#include "report/html/interval_track.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "report/html/track_shape.h"

namespace xenoscope::report {
namespace {

// Where all intervals are shown together that there can be: 16 of these are years.
constexpr uint64_t kLongest = uint64_t{1} << 56U;

// The unit of times where there are too many bytes: 2^8 cycles, a tenth of a microsecond.
constexpr unsigned kCoarseShift = 8;
// Columns whose estimate is so many times what is wanted are longer, however wrong the estimate is.
constexpr double kSurelyLonger = 1.5;

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

}  // namespace

uint64_t NumberColumn::Take(size_t& at) const {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_[at++]);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

void NumberColumn::Grow(size_t more) {
  capacity_ = std::max(2 * capacity_, size_ + more);
  std::unique_ptr<char[]> larger(new char[capacity_]);  // not set to 0
  std::copy_n(bytes_.get(), size_, larger.get());
  bytes_ = std::move(larger);
}

void IntervalTrack::Add(uint32_t code, TrackPart part, uint64_t begin, uint64_t length,
                        ShortIntervals together) {
  Append({.begin = begin,
          .end = begin + length,
          .head = (uint64_t{code} << 2U | static_cast<uint64_t>(part)) + 1,
          .count = 1},
         together);
}

void IntervalTrack::AddParts(const Entry& from, Entry& into) {
  if (from.head == 0) {
    for (size_t i = 0; i < kTrackParts; ++i) into.parts.at(i) += from.parts.at(i);
  } else if (const uint64_t part = (from.head - 1) & 3U; part < kTrackParts) {
    into.parts.at(part) += from.end - from.begin;
  }
}

template <typename F>
void IntervalTrack::Join(const Entry& entry, ShortIntervals together, Entry& open, F write) {
  const bool is_short = entry.head == 0 || entry.end - entry.begin < together.below;
  if (!is_short || !Continues(open, entry.begin, entry.end, together)) {
    if (open.count > 0) write(open);
    open = {};
    if (is_short) {
      open = entry;
    } else {
      write(entry);
    }
    return;
  }
  if (open.head != 0) {
    Entry several{.begin = open.begin, .end = open.end, .count = open.count};
    AddParts(open, several);
    open = several;
  }
  AddParts(entry, open);
  open.end = entry.end;
  open.count += entry.count;
}

void IntervalTrack::Append(const Entry& entry, ShortIntervals together) {
  Join(entry, together, open_, [this](const Entry& complete) { Write(complete); });
}

void IntervalTrack::Write(const Entry& entry) {
  const uint64_t begin = entry.begin >> shift_;
  const uint64_t end = entry.end >> shift_;
  columns_[kHeads].Put<1>({entry.head});
  columns_[kGaps].Put<1>({Zigzag(begin - end_)});
  if (entry.head == 0) {
    static_assert(kTrackParts == 3);
    columns_[kLengths].Put<5>({end - begin, entry.count, entry.parts[0] >> shift_,
                               entry.parts[1] >> shift_, entry.parts[2] >> shift_});
  } else {
    columns_[kLengths].Put<1>({end - begin});
  }
  end_ = end;
  ++entries_;
}

void IntervalTrack::Close() {
  if (open_.count > 0) Write(open_);
  open_ = {};
}

void IntervalTrack::Thin(ShortIntervals together) {
  Close();
  const Columns columns = std::move(columns_);
  const unsigned shift = shift_;
  *this = {};
  shift_ = together.shift;
  ForEachEntry(columns, shift, [&](const Entry& entry) { Append(entry, together); });
}

void IntervalTrack::CountLengths(Lengths& lengths) const {
  ForEachEntry([&lengths](const Entry& entry, uint64_t /*end_before*/) {
    ++lengths.at(entry.head == 0 ? 0 : std::bit_width(entry.end - entry.begin));
  });
}

const IntervalTrack::Columns& IntervalTrack::Finish() {
  Close();
  return columns_;
}

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
  XENOSCOPE_ASSIGN_OR_RETURN(ratio_, PackedRatio(columns_));
  gathered_ = true;
  return absl::OkStatus();
}

bool TrackLimit::AreSurelyLonger(size_t most_bytes) const {
  return static_cast<double>(columns_.size()) * ratio_ >
             kSurelyLonger * static_cast<double>(most_bytes) &&
         !IsLeast();
}

absl::Status TrackLimit::ChooseUnit(size_t most_bytes, ForEachTrack all) {
  XENOSCOPE_RETURN_IF_ERROR(Gather(all));
  if (together_.shift == kCoarseShift || !AreSurelyLonger(most_bytes)) return absl::OkStatus();
  Coarsen(all);
  return Gather(all);
}

absl::Status TrackLimit::Fit(size_t most_bytes, ForEachTrack all) {
  const auto most = static_cast<double>(most_bytes);
  for (;;) {
    XENOSCOPE_RETURN_IF_ERROR(ChooseUnit(most_bytes, all));
    if (AreSurelyLonger(most_bytes)) {
      ThinToBytes(kSurelyLonger * most / ratio_, all);
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

std::vector<uint64_t> TrackLimit::Limits(size_t most, uint64_t parts, ForEachTrack all) const {
  IntervalTrack::Lengths lengths{};
  all([&lengths](const IntervalTrack& track) { track.CountLengths(lengths); });
  // No more entries than these become fewer, whatever is beside them.
  const auto may_be_enough = [&](uint64_t below) {
    const auto end = lengths.begin() + std::bit_width(below) + 1;
    return entries_ <= most + std::accumulate(lengths.begin(), end, size_t{0});
  };
  std::vector<uint64_t> limits;
  // From a fraction of a microsecond on.
  uint64_t below = std::max<uint64_t>(together_.below, 512);
  while (below < kLongest) {
    below = std::min(kLongest, below + below / parts);
    if (!limits.empty() || may_be_enough(below)) limits.push_back(below);
  }
  if (limits.empty()) limits.push_back(kLongest);
  return limits;
}

void TrackLimit::Thin(ForEachTrack all) {
  gathered_ = false;
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
  for (const uint64_t below : Limits(most, kCoarseParts, all)) {
    together_.below = below;
    Thin(all);
    if (entries_ <= most) return;
  }
}

void TrackLimit::ThinToBytes(double most, ForEachTrack all) {
  // An entry for several takes more bytes than one of them.
  const double part = most / static_cast<double>(columns_.size());
  const auto most_entries = static_cast<size_t>(part * static_cast<double>(entries_));
  const std::vector<uint64_t> limits = Limits(most_entries, kFineParts, all);
  const std::vector<IntervalTrack*> tracks = TracksOf(all);
  std::vector<std::optional<TrackShape>> shapes(tracks.size());
  ForEachInParallel(tracks.size(), 1, [&](size_t k) { shapes[k].emplace(*tracks[k]); });
  const auto bytes_with = [&](uint64_t below) {
    std::vector<double> bytes(shapes.size());
    ForEachInParallel(shapes.size(), 1,
                      [&](size_t k) { bytes[k] = shapes[k]->BytesIfThinned(below); });
    return std::accumulate(bytes.begin(), bytes.end(), 0.0);
  };
  // The estimate is as wrong now as it will be.
  const double correction = static_cast<double>(columns_.size()) / bytes_with(together_.below);
  const auto is_enough = [&](size_t i) { return correction * bytes_with(limits[i]) <= most; };
  // The first one that is enough is in [least, end).
  size_t least = 0;
  size_t end = 1;
  while (end < limits.size() && !is_enough(end - 1)) {
    least = end;
    end = std::min(2 * end, limits.size());
  }
  while (end - least > 1) {
    const size_t middle = least + (end - least) / 2;
    (is_enough(middle - 1) ? end : least) = middle;
  }
  together_.below = limits[least];
  Thin(all);
}

}  // namespace xenoscope::report
