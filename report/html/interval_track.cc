#include "report/html/interval_track.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace xenoscope::report {
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
  } else if (from.part() != TrackPart::kNone) {
    into.parts.at(static_cast<size_t>(from.part())) += from.end - from.begin;
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

}  // namespace xenoscope::report
