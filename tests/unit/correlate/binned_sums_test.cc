// Tests sums over time: amounts are kept when bins are merged, and their number is bounded.
#include "correlate/binned_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::SizeIs;

TEST(BinnedSums, SpreadsAmountsOverTheirRange) {
  BinnedSums sums;
  const uint64_t width = sums.width();
  sums.Add(7, {Tsc{width / 2}, Tsc{2 * width}}, 3);
  sums.Add(2, {Tsc{width}, Tsc{width}}, 1);
  EXPECT_THAT(sums.Entries(), ElementsAre(FieldsAre(2, 1, 1), FieldsAre(7, 0, DoubleEq(1)),
                                          FieldsAre(7, 1, DoubleEq(2))));
}

TEST(BinnedSums, TakeAmountsInAnyOrder) {
  BinnedSums sums;
  const uint64_t width = sums.width();
  for (const uint64_t bin : {3U, 1U, 3U, 2U, 1U})
    sums.Add(0, {Tsc{bin * width}, Tsc{bin * width}}, 1);
  EXPECT_THAT(sums.Entries(),
              ElementsAre(FieldsAre(0, 1, 2), FieldsAre(0, 2, 1), FieldsAre(0, 3, 2)));
}

TEST(BinnedSums, MergesBinsOfLongTimes) {
  BinnedSums sums(4, 1000);
  constexpr uint64_t kLength = 1 << 20;
  for (uint64_t at = 0; at < kLength; at += 16) sums.Add(1, {Tsc{at}, Tsc{at + 16}}, 1);
  EXPECT_EQ(sums.width(), kLength / 4);
  const std::vector<BinnedSums::Entry> entries = sums.Entries();
  ASSERT_THAT(entries, SizeIs(4));
  for (const BinnedSums::Entry& entry : entries) EXPECT_DOUBLE_EQ(entry.amount, kLength / 16 / 4);
}

TEST(BinnedSums, EntriesAreBounded) {
  BinnedSums sums(256, 1000);
  constexpr uint32_t kKeys = 100;
  for (uint64_t at = 0; at < 1'000'000; at += 100) {
    sums.Add(static_cast<uint32_t>(at / 100) % kKeys, {Tsc{at}, Tsc{at + 1}}, 1);
  }
  std::map<uint32_t, double> amounts;
  for (const BinnedSums::Entry& entry : sums.Entries()) amounts[entry.key] += entry.amount;
  EXPECT_LE(sums.Entries().size(), 1000);
  EXPECT_THAT(amounts, SizeIs(kKeys));
  for (const auto& [key, amount] : amounts) EXPECT_DOUBLE_EQ(amount, 100) << key;
}

}  // namespace
}  // namespace xenoscope::correlate
