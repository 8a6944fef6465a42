// How many bytes a track of the page's timeline would take if more of its intervals were shown
// together. Its entries are read once, so that many limits can be tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/html/interval_track.h"

namespace xenoscope::report {

class TrackShape {
 public:
  // O(entries).
  explicit TrackShape(const IntervalTrack& track);

  // Returns an estimate of the bytes of the track's columns after IntervalTrack::Thin in the unit
  // that it has. It is some percent too large: of several, each part is taken to be as long as all.
  // O(entries), and some nanoseconds for each.
  [[nodiscard]] double BytesIfThinned(uint64_t below) const;

 private:
  struct Entry {
    uint32_t gap =
        0;  // since the end of the entry before, in units; the largest number: it overlaps
    uint32_t length = 0;  // in units
    bool is_several = false;
    uint8_t parts = 0;  // a bit for each that it has time of
  };

  unsigned shift_;
  double head_bytes_ = 0;  // of an interval's first number, on average
  std::vector<Entry> entries_;
};

}  // namespace xenoscope::report
