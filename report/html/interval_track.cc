#include "report/html/interval_track.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "report/html/packed.h"

namespace xenoscope::report {
namespace {

// Where all intervals are shown together that there can be: 16 of these are years.
constexpr uint64_t kLongest = uint64_t{1} << 56U;

// Units of times: 2^4 cycles where there are too many bytes, then 2^8, a tenth of a microsecond.
constexpr unsigned kShiftStep = 4;
constexpr unsigned kMaxShift = 8;

// TrackLimit::Thin: while intervals come, passes are many and their result is not the last one; for
// the page, bytes that are left would show more. Intervals of one kind have similar lengths.
constexpr uint64_t kCoarseParts = 4;
constexpr uint64_t kFineParts = 8;

uint64_t Zigzag(uint64_t difference) {
  return (difference << 1U) ^ (static_cast<int64_t>(difference) < 0 ? ~uint64_t{0} : 0);
}
uint64_t Unzigzag(uint64_t number) { return (number >> 1U) ^ (~(number & 1U) + 1); }

}  // namespace

void NumberColumn::Put(uint64_t value) {
  if (capacity_ - size_ < kMostNumberBytes) Grow();
  size_ = static_cast<size_t>(WriteNumber(value, bytes_.get() + size_) - bytes_.get());
}

uint64_t NumberColumn::Take(size_t& at) const {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_[at++]);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

void NumberColumn::Grow() {
  capacity_ = std::max(2 * capacity_, 4 * kMostNumberBytes);
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

void IntervalTrack::Append(const Entry& entry, ShortIntervals together) {
  const bool is_short = entry.head == 0 || entry.end - entry.begin < together.below;
  if (!is_short) {
    Close();
    Write(entry);
    return;
  }
  const bool joins = open_.count > 0 && entry.begin >= open_.end &&
                     entry.begin - open_.end < together.below &&
                     entry.end - open_.begin <= together.Longest();
  if (!joins) {
    Close();
    open_ = entry;
    return;
  }
  if (open_.head != 0) {
    Entry several{.begin = open_.begin, .end = open_.end, .count = open_.count};
    AddParts(open_, several);
    open_ = several;
  }
  AddParts(entry, open_);
  open_.end = entry.end;
  open_.count += entry.count;
}

void IntervalTrack::Write(const Entry& entry) {
  const uint64_t begin = entry.begin >> shift_;
  const uint64_t end = entry.end >> shift_;
  columns_[kHeads].Put(entry.head);
  columns_[kGaps].Put(Zigzag(begin - end_));
  columns_[kLengths].Put(end - begin);
  if (entry.head == 0) {
    columns_[kLengths].Put(entry.count);
    for (const uint64_t part : entry.parts) columns_[kLengths].Put(part >> shift_);
  }
  end_ = end;
  ++entries_;
}

void IntervalTrack::Close() {
  if (open_.count > 0) Write(open_);
  open_ = {};
}

template <typename F>
void IntervalTrack::ForEachEntry(const Columns& columns, unsigned shift, F visit) {
  std::array<size_t, kColumns> at{};
  const auto take = [&](Column column) { return columns[column].Take(at[column]); };
  uint64_t end = 0;  // in the units of the columns
  while (at[kHeads] < columns[kHeads].bytes().size()) {
    Entry entry{.head = take(kHeads), .count = 1};
    const uint64_t begin = end + Unzigzag(take(kGaps));
    end = begin + take(kLengths);
    entry.begin = begin << shift;
    entry.end = end << shift;
    if (entry.head == 0) {
      entry.count = take(kLengths);
      for (uint64_t& part : entry.parts) part = take(kLengths) << shift;
    }
    visit(entry);
  }
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
  const auto count = [&lengths](const Entry& entry) {
    ++lengths.at(entry.head == 0 ? 0 : std::bit_width(entry.end - entry.begin));
  };
  ForEachEntry(columns_, shift_, count);
  if (open_.count > 0) count(open_);
}

const IntervalTrack::Columns& IntervalTrack::Finish() {
  Close();
  return columns_;
}

nlohmann::ordered_json PackedTracks::ToJson() const {
  return {{"packed", packed}, {"bytes", bytes}, {"unit", unit}, {"together_below", together_below}};
}

void TrackLimit::Add(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin,
                     uint64_t length, ForEachTrack all) {
  entries_ -= track.entries();
  track.Add(code, part, begin, length, together_);
  entries_ += track.entries();
  if (entries_ > most_) Thin(most_ / 4 * 3, kCoarseParts, all);
}

bool TrackLimit::IsLeast() const { return entries_ == 0 || together_.below >= kLongest; }

std::string TrackLimit::Gather(ForEachTrack all) {
  packed_ = {.unit = uint64_t{1} << together_.shift, .together_below = together_.below};
  std::string bytes;
  entries_ = 0;
  all([&](IntervalTrack& track) {
    for (const NumberColumn& column : track.Finish()) {
      packed_.bytes.push_back(column.bytes().size());
      bytes += column.bytes();
    }
    entries_ += track.entries();
  });
  return bytes;
}

absl::Status TrackLimit::ChooseUnit(size_t most_bytes, ForEachTrack all) {
  for (;; all([this](IntervalTrack& track) { track.Thin(together_); })) {
    if (packed_.packed.empty()) {
      const std::string bytes = Gather(all);
      const bool may_be_coarser = together_.shift < kMaxShift && !IsLeast();
      if (!may_be_coarser || !IsFarLonger(bytes, most_bytes)) {
        XENOSCOPE_ASSIGN_OR_RETURN(packed_.packed, Packed(bytes));
      }
    }
    const bool is_known = !packed_.packed.empty();
    if (is_known && (Fits(most_bytes) || together_.shift == kMaxShift)) return absl::OkStatus();
    together_.shift += kShiftStep;
    packed_.packed.clear();
  }
}

absl::StatusOr<PackedTracks> TrackLimit::Pack(size_t most_bytes, ForEachTrack all) {
  XENOSCOPE_RETURN_IF_ERROR(ChooseUnit(most_bytes, all));
  while (!Fits(most_bytes)) {
    Thin(entries_ * most_bytes / packed_.packed.size(), kFineParts, all);
    const std::string bytes = Gather(all);
    XENOSCOPE_ASSIGN_OR_RETURN(packed_.packed, Packed(bytes));
  }
  return std::exchange(packed_, {});
}

void TrackLimit::Thin(size_t most, uint64_t parts, ForEachTrack all) {
  IntervalTrack::Lengths lengths{};
  all([&lengths](const IntervalTrack& track) { track.CountLengths(lengths); });
  // No more entries than these become fewer, whatever is beside them.
  const auto shorter_than = [&lengths](uint64_t below) {
    const auto end = lengths.begin() + std::bit_width(below) + 1;
    return std::accumulate(lengths.begin(), end, size_t{0});
  };
  // From a fraction of a microsecond on.
  together_.below = std::max<uint64_t>(together_.below, 512);
  while (entries_ > most && together_.below < kLongest) {
    together_.below += together_.below / parts;
    if (entries_ > most + shorter_than(together_.below)) continue;
    entries_ = 0;
    all([this](IntervalTrack& track) {
      track.Thin(together_);
      entries_ += track.entries();
    });
  }
}

}  // namespace xenoscope::report
