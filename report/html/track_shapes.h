// How many bytes tracks of the page's timeline would take if more of their intervals were shown
// together. Their entries are read once, so that many limits can be tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/html/interval_track.h"

namespace xenoscope::report {

class TrackShapes {
 public:
  // The shapes of the tracks, made on all processors. O(entries).
  explicit TrackShapes(std::span<IntervalTrack* const> tracks);
  TrackShapes(TrackShapes&&) = default;
  TrackShapes& operator=(TrackShapes&&) = default;

  // Returns an estimate of the bytes of the tracks' columns after IntervalTrack::Thin in the unit
  // that they have, made on all processors. It is some percent too large: of several, each part is
  // taken to be as long as all. O(entries), and some nanoseconds for each.
  [[nodiscard]] double BytesIfThinned(uint64_t below) const;
  // Returns nearly the same, by a sample of the entries, in an eighth of the time. Where most of
  // them are shown together it is larger: what is shown together ends with each piece of the
  // sample.
  [[nodiscard]] double SampledBytesIfThinned(uint64_t below) const;

 private:
  struct Entry {
    uint32_t gap =
        0;  // since the end of the entry before, in units; the largest number: it overlaps
    uint32_t length = 0;  // in units
    bool is_several = false;
    uint8_t parts = 0;  // a bit for each that it has time of
  };
  struct Track {
    unsigned shift = 0;
    double head_bytes = 0;  // of an interval's first number, on average
    std::vector<Entry> entries{};
  };
  // Entries of a track that follow each other: what is estimated at once.
  struct Piece {
    const Track* track = nullptr;
    std::span<const Entry> entries{};
  };

  [[nodiscard]] static Track ShapeOf(const IntervalTrack& track);
  // Returns the bytes of all pieces, made on all processors, and of one.
  [[nodiscard]] static double Bytes(std::span<const Piece> pieces, uint64_t below);
  [[nodiscard]] static double PieceBytes(const Piece& piece, uint64_t below);

  std::vector<Track> tracks_;
  std::vector<Piece> pieces_;      // of all tracks: they point into tracks_
  std::vector<Piece> sample_;      // the first entries of each
  double entries_by_sampled_ = 1;  // so many times as many entries as are in the sample
};

}  // namespace xenoscope::report
