// Keeps the tracks of one picture in the page small enough: where they have too many intervals,
// more of the short ones are shown together.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "report/html/interval_track.h"
#include "report/html/track_sample.h"

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
  // first, of 256 cycles. May be called again for fewer bytes, which costs little where the tracks
  // have so few already. O(entries). Errors: Internal when libdeflate fails.
  absl::Status Fit(size_t most_bytes, ForEachTrack all);
  // The tracks, after Fit.
  [[nodiscard]] const PackedTracks& packed() const { return packed_; }

 private:
  void AddEntry(IntervalTrack& track, uint32_t code, TrackPart part, uint64_t begin,
                uint64_t length, ForEachTrack all);
  // Returns how many entries are to be left where there are too many.
  [[nodiscard]] size_t Target() const;
  // Whether each track is one entry.
  [[nodiscard]] bool IsLeast() const;
  // Shows more intervals together, and in the coarser unit, until there are at most so many bytes
  // of the page, as far as an estimate says it; somewhat more are left as they are. Returns the
  // estimate. Errors: Internal when libdeflate fails.
  absl::StatusOr<double> ThinToBytes(double most, const TrackSample& sample, ForEachTrack all);
  // Makes packed_. Errors: Internal when libdeflate fails.
  absl::Status Pack(ForEachTrack all);
  // Shows more intervals together until there are about `most` entries at most, or all are
  // together. O(entries).
  void ThinTo(size_t most, ForEachTrack all);
  // Returns the first of the limits of length behind that of together_ that is_enough, or else the
  // last one. Each is longer than the one before by one part of `parts`.
  template <std::predicate<ShortIntervals> IsEnough>
  [[nodiscard]] uint64_t FirstEnough(uint64_t parts, const IsEnough& is_enough) const;
  // Thins all tracks as together_ says. O(entries).
  void Thin(ForEachTrack all);

  size_t most_;
  double part_come_ = 1;
  size_t entries_ = 0;
  ShortIntervals together_;
  PackedTracks packed_;
  bool is_packed_ = false;  // packed_ is of the tracks as they are
};

}  // namespace xenoscope::report
