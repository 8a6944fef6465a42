#include "report/html/interval_track.h"

#include <algorithm>
#include <utility>

namespace xenoscope::report {

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
  *this = IntervalTrack(together.shift);
  ForEachEntry(columns, shift, [&](const Entry& entry) { Append(entry, together); });
}

const IntervalTrack::Columns& IntervalTrack::Finish() {
  Close();
  return columns_;
}

}  // namespace xenoscope::report
