// How large tracks of the page's timeline would be if more of their intervals were shown together:
// estimated by a sample of their entries, so that many limits of length can be tried.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "report/html/interval_track.h"

namespace xenoscope::report {

class TrackSample {
 public:
  // How large a sample is, in entries.
  struct Extent {
    size_t run = 0;  // entries that follow each other
    size_t all = 0;
  };
  // Enough to count entries to some percent. Entries compress by what is not far before them, so
  // that it takes longer runs to pack some.
  static constexpr Extent kToCount{size_t{1} << 10U, size_t{1} << 15U};
  static constexpr Extent kToPack{size_t{1} << 14U, size_t{1} << 17U};

  // Takes a sample of the tracks' entries, on all processors: all of them, if they are few, or else
  // runs of entries at equal distances. O(entries).
  TrackSample(std::span<IntervalTrack* const> tracks, Extent extent);

  // Of all tracks after IntervalTrack::Thin(together), estimated on all processors. Runs have ends
  // that tracks do not have, so that a run's last entries may be more.
  struct Size {
    double entries = 0;
    double column_bytes = 0;
  };
  [[nodiscard]] Size SizeIfThinned(ShortIntervals together) const;
  // Nearly the same, by the first quarter of each run, in a quarter of the time.
  [[nodiscard]] Size RoughSizeIfThinned(ShortIntervals together) const;
  // The bytes of the page that they would take then.
  struct PackedSize {
    double bytes = 0;
    double ratio = 0;  // by Size::column_bytes
  };
  // Packs some of the sample (kToPack), which says how well it compresses: differently well when
  // more is shown together. Some milliseconds. Errors: Internal when libdeflate fails.
  [[nodiscard]] absl::StatusOr<PackedSize> PackedSizeIfThinned(ShortIntervals together) const;

 private:
  // Entries of a track that follow each other.
  using Run = std::vector<IntervalTrack::Entry>;

  // The same by the first part of each run, one of so many.
  [[nodiscard]] Size SizeByFirst(size_t parts, ShortIntervals together) const;

  std::vector<Run> runs_;
  double weight_ = 1;  // so many times as many entries as are in the sample
};

}  // namespace xenoscope::report
