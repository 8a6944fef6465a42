#include "report/html/interval_track.h"

#include <algorithm>

#include "base/error.h"
#include "report/html/packed.h"

namespace xenoscope::report {
namespace {

// Where all intervals are shown together that there can be: 16 of these are years.
constexpr uint64_t kLongest = uint64_t{1} << 56U;

// Reads what PutNumber wrote, from `at` on, and moves `at` behind it.
uint64_t TakeNumber(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at(at++));
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

uint64_t Zigzag(uint64_t difference) {
  return (difference << 1U) ^ (static_cast<int64_t>(difference) < 0 ? ~uint64_t{0} : 0);
}
uint64_t Unzigzag(uint64_t number) { return (number >> 1U) ^ (~(number & 1U) + 1); }

}  // namespace

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
  PutNumber(entry.head, bytes_);
  PutNumber(Zigzag(entry.begin - end_), bytes_);
  PutNumber(entry.end - entry.begin, bytes_);
  if (entry.head == 0) {
    PutNumber(entry.count, bytes_);
    for (const uint64_t part : entry.parts) PutNumber(part, bytes_);
  }
  end_ = entry.end;
  ++entries_;
}

void IntervalTrack::Close() {
  if (open_.count > 0) Write(open_);
  open_ = {};
}

void IntervalTrack::Thin(ShortIntervals together) {
  const std::string bytes = Finish();
  *this = {};
  uint64_t end = 0;
  for (size_t at = 0; at < bytes.size();) {
    Entry entry;
    entry.head = TakeNumber(bytes, at);
    entry.begin = end + Unzigzag(TakeNumber(bytes, at));
    entry.end = entry.begin + TakeNumber(bytes, at);
    entry.count = 1;
    if (entry.head == 0) {
      entry.count = TakeNumber(bytes, at);
      for (uint64_t& part : entry.parts) part = TakeNumber(bytes, at);
    }
    end = entry.end;
    Append(entry, together);
  }
}

const std::string& IntervalTrack::Finish() {
  Close();
  return bytes_;
}

void TrackLimit::Add(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin,
                     uint64_t length, ForEachTrack all) {
  entries_ -= track.entries();
  track.Add(code, part, begin, length, together_);
  entries_ += track.entries();
  if (entries_ > most_) Thin(most_ / 4 * 3, all);
}

absl::StatusOr<PackedTracks> TrackLimit::Pack(size_t most_bytes, ForEachTrack all) {
  for (;;) {
    PackedTracks tracks;
    std::string bytes;
    size_t entries = 0;
    all([&](IntervalTrack& track) {
      const std::string& own = track.Finish();
      tracks.bytes.push_back(own.size());
      bytes += own;
      entries += track.entries();
    });
    XENOSCOPE_ASSIGN_OR_RETURN(tracks.packed, Packed(bytes));
    if (tracks.packed.size() <= most_bytes || together_.below >= kLongest) return tracks;
    entries_ = entries;
    Thin(entries * most_bytes / tracks.packed.size(), all);
  }
}

void TrackLimit::Thin(size_t most, ForEachTrack all) {
  // From a fraction of a microsecond on, in small steps: intervals of one kind have similar
  // lengths.
  together_.below = std::max<uint64_t>(together_.below, 512);
  while (entries_ > most && together_.below < kLongest) {
    together_.below += together_.below / 8;
    entries_ = 0;
    all([this](IntervalTrack& track) {
      track.Thin(together_);
      entries_ += track.entries();
    });
  }
}

}  // namespace xenoscope::report
