// Keeps the tracks of one picture in the page small enough: where they have too many intervals,
// more of the short ones are shown together.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "report/html/interval_track.h"
#include "report/html/track_shapes.h"

namespace xenoscope::report {

// Tracks as the page has them.
struct PackedTracks {
  std::string packed{};         // the columns of all tracks: Packed()
  std::vector<size_t> bytes{};  // of each column of each track, before they were packed
  uint64_t unit = 1;            // cycles
  // Intervals of fewer cycles were shown together; 0: none were.
  uint64_t together_below = 0;

  // Returns them as the page has them (docs/schemas/page.schema.json).
  [[nodiscard]] nlohmann::ordered_json ToJson() const;
};

// Keeps the entries of several tracks together below a maximum: beyond it, more of the short
// intervals are shown together.
class TrackLimit {
 public:
  // Calls its argument for each of the tracks.
  using ForEachTrack = absl::FunctionRef<void(absl::FunctionRef<void(IntervalTrack&)>)>;

  // At most `most` entries.
  explicit TrackLimit(size_t most) : most_(most) {}

  // Add the interval to the track, which is one of `all`: see IntervalTrack::Add.
  void Add(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin, uint64_t length,
           ForEachTrack all) {
    Add(
        track, [code] { return code; }, part, begin, length, all);
  }
  // code() returns the code, and is called where that is written.
  template <std::invocable Code>
  void Add(IntervalTrack& track, const Code& code, TrackPart part, uint64_t begin, uint64_t length,
           ForEachTrack all) {
    if (track.AddToLast(part, begin, length, together_)) return;
    AddEntry(track, code(), part, begin, length, all);
  }
  // Says which part of the intervals has come, in [0, 1], roughly. As long as few have, more are
  // shown together than there need to be: as many as there will need to be. Without it, all have.
  void SetPartCome(double part) { part_come_ = part; }
  // Makes the tracks, after the last interval, at most `most_bytes` bytes of the page unless all
  // intervals of a track are one entry. How many bytes an entry takes is known only now: those of a
  // busy host have times that compress badly. Where there are too many, times get a coarser unit
  // first, of 256 cycles. O(entries log(limits of length)). Errors: Internal when libdeflate fails.
  absl::Status Fit(size_t most_bytes, ForEachTrack all);
  // Does what Fit does first, if it will be called for at most so many bytes: it chooses the unit,
  // as far as an estimate says which, and reads what it will try limits of length with. Errors: the
  // same.
  absl::Status Prepare(size_t most_bytes, ForEachTrack all);
  // The bytes of the page that the tracks would take, after Prepare, as far as an estimate says it.
  [[nodiscard]] size_t EstimatedBytes() const {
    return static_cast<size_t>(ratio_ * static_cast<double>(columns_.size()));
  }
  // The tracks, after Fit.
  [[nodiscard]] const PackedTracks& packed() const { return packed_; }

 private:
  void AddEntry(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin,
                uint64_t length, ForEachTrack all);
  // Returns how many entries are to be left where there are too many.
  [[nodiscard]] size_t Target() const;
  // Whether each track is one entry.
  [[nodiscard]] bool IsLeast() const;
  // Sets columns_, ratio_, and packed_ but its text, unless they are set. Errors: Internal when
  // libdeflate fails.
  absl::Status Gather(ForEachTrack all);
  // Whether the tracks are more than so many bytes of the page, as far as an estimate says it, and
  // can be fewer.
  [[nodiscard]] bool AreLonger(double most_bytes) const;
  // Shows more intervals together until there are at most `most` entries, or all are together.
  // O(entries) for each limit of length that could be enough.
  void ThinTo(size_t most, ForEachTrack all);
  // The same, in the coarser unit, until there are at most so many bytes of columns, as far as an
  // estimate says it: most limits are tried with a sample of the entries. O(entries log(limits of
  // length)).
  void ThinToBytes(double most, ForEachTrack all);
  // Returns the limits of length that follow that of together_, each longer by one part of so many.
  // Not empty.
  [[nodiscard]] std::vector<uint64_t> Limits(uint64_t parts) const;
  // Thins all tracks as together_ says. O(entries).
  void Thin(ForEachTrack all);
  // Makes the unit of times coarser. O(entries).
  void Coarsen(ForEachTrack all);

  size_t most_;
  double part_come_ = 1;
  size_t entries_ = 0;
  ShortIntervals together_;
  bool gathered_ = false;              // whether these are of the tracks as they are
  std::string columns_;                // those of all tracks
  double ratio_ = 0;                   // an estimate of the bytes of the page by those of columns_
  PackedTracks packed_;                // empty text: not packed yet
  std::optional<TrackShapes> shapes_;  // those of the tracks as they are, if they are known
};

}  // namespace xenoscope::report
