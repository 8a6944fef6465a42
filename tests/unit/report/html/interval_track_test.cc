// Tests the packed intervals of the page's timeline: what is kept of each, and that short ones
// which are shown together lose no time.
#include "report/html/interval_track.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "report/html/packed.h"
#include "report/html/track_limit.h"
#include "report/html/track_sample.h"

namespace xenoscope::report {
namespace {

using testing::ElementsAre;
using Numbers = std::vector<uint64_t>;

Numbers ReadColumn(std::string_view column) {
  Numbers numbers;
  uint64_t value = 0;
  unsigned shift = 0;
  for (const char c : column) {
    const auto byte = static_cast<uint8_t>(c);
    value |= uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    numbers.push_back(value);
    value = 0;
    shift = 0;
  }
  return numbers;
}

// The numbers of the entries, as the page reads them: head, gap, length; of several also their
// number and parts.
Numbers Read(IntervalTrack& track) {
  const auto& columns = track.Finish();
  const Numbers heads = ReadColumn(columns[IntervalTrack::kHeads].bytes());
  const Numbers gaps = ReadColumn(columns[IntervalTrack::kGaps].bytes());
  const Numbers lengths = ReadColumn(columns[IntervalTrack::kLengths].bytes());
  EXPECT_EQ(gaps.size(), heads.size());
  Numbers numbers;
  size_t next = 0;
  for (size_t i = 0; i < heads.size(); ++i) {
    numbers.push_back(heads[i]);
    numbers.push_back(gaps.at(i));
    for (size_t k = heads[i] == 0 ? 2 + kTrackParts : 1; k > 0; --k) {
      numbers.push_back(lengths.at(next++));
    }
  }
  EXPECT_EQ(next, lengths.size());
  return numbers;
}

double ColumnBytes(IntervalTrack& track) {
  double bytes = 0;
  for (const NumberColumn& column : track.Finish())
    bytes += static_cast<double>(column.bytes().size());
  return bytes;
}

TEST(IntervalTrack, KeepsEachInterval) {
  IntervalTrack track;
  track.Add(0, TrackPart::kFirst, 100, 50, {});
  track.Add(7, TrackPart::kNone, 150, 1'000'000'000'000, {});
  EXPECT_EQ(track.entries(), 2);
  EXPECT_THAT(Read(track), ElementsAre(1, 200, 50, (7 << 2) + 4, 0, 1'000'000'000'000));
}

// What begins where something ends does so in any unit.
TEST(IntervalTrack, CoarserUnitsLeaveNoGaps) {
  IntervalTrack track;
  track.Add(0, TrackPart::kFirst, 100, 50, {});
  track.Add(1, TrackPart::kFirst, 150, 100, {});
  track.Add(2, TrackPart::kFirst, 250, 3, {});
  track.Thin({.shift = 4});
  EXPECT_THAT(Read(track), ElementsAre(1, 2 * 6, 3, 5, 0, 6, 9, 0, 0));
  track.Thin({.shift = 6});
  EXPECT_THAT(Read(track), ElementsAre(1, 2 * 1, 1, 5, 0, 1, 9, 0, 0));
}

TEST(IntervalTrack, OverlapsAreKept) {
  IntervalTrack track;
  track.Add(0, TrackPart::kFirst, 100, 50, {});
  track.Add(0, TrackPart::kFirst, 140, 50, {});
  EXPECT_THAT(Read(track), ElementsAre(1, 200, 50, 1, 19, 50));
}

TEST(IntervalTrack, ShortNeighboursAreOneEntry) {
  IntervalTrack track;
  const ShortIntervals together{.below = 100};
  track.Add(0, TrackPart::kFirst, 0, 60, together);
  track.Add(1, TrackPart::kSecond, 60, 40, together);
  track.Add(0, TrackPart::kFirst, 110, 30, together);
  track.Add(1, TrackPart::kSecond, 140, 100, together);
  track.Add(2, TrackPart::kThird, 240, 10, together);
  EXPECT_THAT(Read(track), ElementsAre(0, 0, 140, 3, 90, 40, 0,  // several
                                       (1 << 2 | 1) + 1, 0, 100, (2 << 2 | 2) + 1, 0, 10));
}

TEST(IntervalTrack, EntriesOfSeveralAreBounded) {
  IntervalTrack track;
  const ShortIntervals together{.below = 100};
  for (uint64_t i = 0; i < 64; ++i) track.Add(0, TrackPart::kFirst, 50 * i, 50, together);
  const Numbers numbers = Read(track);
  ASSERT_EQ(numbers.size(), 14);
  EXPECT_EQ(numbers[2], together.Longest());
  EXPECT_EQ(numbers[9], together.Longest());
}

TEST(IntervalTrack, ThinningLosesNoTime) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same intervals each time
  IntervalTrack track;
  Numbers expected(kTrackParts);
  uint64_t at = 0;
  constexpr uint64_t kIntervals = 5'000;
  for (uint64_t i = 0; i < kIntervals; ++i) {
    at += random() % 40;
    const uint64_t length = random() % 300;
    const size_t part = random() % kTrackParts;
    track.Add(static_cast<uint32_t>(random() % 9), static_cast<TrackPart>(part), at, length, {});
    expected[part] += length;
    at += length;
  }
  size_t entries = track.entries();
  for (uint64_t below = 64; below <= 4096; below *= 2) {
    track.Thin({.below = below});
    EXPECT_LE(track.entries(), entries);
    entries = track.entries();
    const Numbers numbers = Read(track);
    Numbers parts(kTrackParts);
    uint64_t count = 0;
    for (size_t i = 0; i < numbers.size();) {
      if (numbers[i] != 0) {
        parts.at((numbers[i] - 1) & 3U) += numbers[i + 2];
        ++count;
        i += 3;
        continue;
      }
      EXPECT_LE(numbers[i + 2], 16 * below);
      count += numbers[i + 3];
      for (size_t k = 0; k < kTrackParts; ++k) parts[k] += numbers[i + 4 + k];
      i += 7;
    }
    EXPECT_EQ(parts, expected) << below;
    EXPECT_EQ(count, kIntervals) << below;
  }
  EXPECT_LT(entries, kIntervals / 100);
}

// Intervals whose times do not compress: they are put together until they have few enough bytes.
TEST(TrackLimit, BoundsBytesOfPage) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same intervals each time
  constexpr size_t kMostBytes = 20'000;
  constexpr uint64_t kIntervals = 20'000;
  std::vector<IntervalTrack> tracks(2);
  const auto all = [&tracks](auto visit) {
    for (IntervalTrack& track : tracks) visit(track);
  };
  TrackLimit limit(kIntervals);
  uint64_t at = 0;
  uint64_t length_of_all = 0;
  for (uint64_t i = 0; i < kIntervals; ++i) {
    const uint64_t length = random() % 1'000'000;
    limit.Add(tracks[i % 2], static_cast<uint32_t>(random() % 9), TrackPart::kFirst, at, length,
              all);
    at += length;
    length_of_all += length;
  }
  ASSERT_TRUE(limit.Fit(2 * kMostBytes, all).ok());
  const PackedTracks& packed = limit.packed();
  EXPECT_LE(packed.packed.size(), 2 * kMostBytes);
  EXPECT_GT(packed.packed.size(), kMostBytes);
  ASSERT_TRUE(limit.Fit(kMostBytes, all).ok());
  EXPECT_LE(packed.packed.size(), kMostBytes);
  EXPECT_GT(packed.packed.size(), kMostBytes / 4);
  EXPECT_GT(packed.together_below, 0);
  EXPECT_EQ(packed.unit, 256);
  ASSERT_EQ(packed.bytes.size(), 2 * IntervalTrack::kColumns);
  uint64_t kept = 0;
  for (IntervalTrack& track : tracks) {
    const Numbers numbers = Read(track);
    for (size_t i = 0; i < numbers.size(); i += numbers[i] == 0 ? 7 : 3) {
      kept += packed.unit * (numbers[i] == 0 ? numbers[i + 4] : numbers[i + 2]);
    }
  }
  const auto all_cycles = static_cast<double>(length_of_all);
  EXPECT_NEAR(static_cast<double>(kept), all_cycles, 0.001 * all_cycles);
}

// Where a tenth of the intervals has come, ten times as many as there are will be.
TEST(TrackLimit, LeavesRoomForIntervalsToCome) {
  constexpr size_t kMost = 8000;
  const auto entries_with = [](double part_come) {
    IntervalTrack track;
    TrackLimit limit(kMost);
    if (part_come < 1) limit.SetPartCome(part_come);
    uint64_t at = 0;
    for (uint64_t i = 0; i <= kMost; ++i) {
      const uint64_t length = uint64_t{1} << (10 + i % 16);  // evenly spread over octaves
      limit.Add(track, 1, TrackPart::kFirst, at, length, [&](auto visit) { visit(track); });
      at += length;
    }
    return track.entries();
  };
  const size_t all = entries_with(1);
  EXPECT_LE(all, kMost / 4 * 3);
  const size_t half = entries_with(0.5);
  EXPECT_LE(half, kMost / 2);
  EXPECT_LT(half, all);
  EXPECT_LE(entries_with(0.25), kMost / 4);
  EXPECT_EQ(entries_with(0.01), entries_with(0.125));
}

// However few bytes are wanted, it ends.
TEST(TrackLimit, EndsWhereNothingIsSmallEnough) {
  std::vector<IntervalTrack> tracks(3);
  const auto all = [&tracks](auto visit) {
    for (IntervalTrack& track : tracks) visit(track);
  };
  TrackLimit empty(100);
  ASSERT_TRUE(empty.Fit(1, all).ok());
  EXPECT_EQ(empty.packed().bytes.size(), 3 * IntervalTrack::kColumns);
  TrackLimit limit(100);
  for (IntervalTrack& track : tracks) limit.Add(track, 0, TrackPart::kFirst, 5, 10, all);
  ASSERT_TRUE(limit.Fit(1, all).ok());
  EXPECT_EQ(limit.packed().bytes.size(), 3 * IntervalTrack::kColumns);
}

// What tracks would take is what they take afterwards, but for the ends of runs.
TEST(TrackSample, AllOfFewEntries) {
  for (const ShortIntervals together : {ShortIntervals{.below = 200}, ShortIntervals{.below = 300},
                                        ShortIntervals{.below = 700, .shift = 8},
                                        ShortIntervals{.below = uint64_t{1} << 40U, .shift = 8}}) {
    std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same intervals each time
    IntervalTrack track;
    uint64_t at = 0;
    for (size_t i = 0; i < 5000; ++i) {
      at += random() % 100;
      const uint64_t length = random() % 4 == 0 ? random() >> 40U : random() % 500;
      track.Add(static_cast<uint32_t>(random() % 9), static_cast<TrackPart>(random() % 2), at,
                length, {.below = 200});
      at += length;
    }
    IntervalTrack* const one = &track;
    const TrackSample::Size estimate =
        TrackSample({&one, 1}, TrackSample::kToPack).SizeIfThinned(together);
    track.Thin(together);
    EXPECT_EQ(estimate.entries, track.entries()) << together.below;
    EXPECT_NEAR(estimate.column_bytes, ColumnBytes(track), 10) << together.below;
  }
}

// A sample says nearly what all entries do, however different parts of the tracks are.
TEST(TrackSample, SomeOfManyEntries) {
  for (const uint64_t below : {uint64_t{0}, uint64_t{200}, uint64_t{700}, uint64_t{3000}}) {
    std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same intervals each time
    std::vector<IntervalTrack> tracks(3);
    uint64_t at = 0;
    for (uint64_t i = 0; i < 400'000; ++i) {
      at += random() % 100;
      const uint64_t length = random() % (i / 60'000 % 2 == 0 ? 400 : 2000);
      tracks[i % 3].Add(1, TrackPart::kFirst, at, length, {});
      at += length;
    }
    const std::vector<IntervalTrack*> all{&tracks[0], &tracks[1], &tracks[2]};
    const ShortIntervals together{.below = below, .shift = 4};
    const TrackSample::Size counted =
        TrackSample(all, TrackSample::kToCount).SizeIfThinned(together);
    const TrackSample sample(all, TrackSample::kToPack);
    const TrackSample::Size size = sample.SizeIfThinned(together);
    const absl::StatusOr<TrackSample::PackedSize> packed = sample.PackedSizeIfThinned(together);
    ASSERT_TRUE(packed.ok());
    double entries = 0;
    double bytes = 0;
    std::string columns;
    for (IntervalTrack& track : tracks) {
      track.Thin(together);
      bytes += ColumnBytes(track);
      entries += static_cast<double>(track.entries());
      for (const NumberColumn& column : track.Finish()) columns += column.bytes();
    }
    EXPECT_NEAR(counted.entries, entries, entries / 10) << below;
    EXPECT_NEAR(size.entries, entries, entries / 20) << below;
    EXPECT_NEAR(size.column_bytes, bytes, bytes / 20) << below;
    EXPECT_NEAR(sample.RoughSizeIfThinned(together).column_bytes, bytes, bytes / 15) << below;
    const auto whole = static_cast<double>(Packed(columns)->size());
    EXPECT_NEAR(packed->bytes, whole, whole / 8) << below;
    EXPECT_DOUBLE_EQ(packed->ratio, packed->bytes / size.column_bytes) << below;
  }
}

}  // namespace
}  // namespace xenoscope::report
