// Tests sums over time: amounts are kept when bins are merged, and their number is bounded.
#include "correlate/binned_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
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
  const auto amounts = sums.ByKey(8);
  EXPECT_THAT(amounts[2], ElementsAre(FieldsAre(1, 1)));
  EXPECT_THAT(amounts[7], ElementsAre(FieldsAre(0, DoubleEq(1)), FieldsAre(1, DoubleEq(2))));
}

TEST(BinnedSums, TakeAmountsInAnyOrder) {
  BinnedSums sums;
  const uint64_t width = sums.width();
  for (const uint64_t bin : {3U, 1U, 3U, 2U, 1U})
    sums.Add(0, {Tsc{bin * width}, Tsc{bin * width}}, 1);
  EXPECT_THAT(sums.ByKey(1)[0], ElementsAre(FieldsAre(1, 2), FieldsAre(2, 1), FieldsAre(3, 2)));
}

TEST(BinnedSums, MergesBinsOfLongTimes) {
  BinnedSums sums(4, 1000);
  constexpr uint64_t kLength = 1 << 20;
  for (uint64_t at = 0; at < kLength; at += 16) sums.Add(1, {Tsc{at}, Tsc{at + 16}}, 1);
  EXPECT_EQ(sums.width(), kLength / 4);
  const std::vector<BinAmount> amounts = sums.ByKey(2)[1];
  ASSERT_THAT(amounts, SizeIs(4));
  constexpr double kInEach = kLength / 16.0 / 4.0;
  for (const BinAmount& each : amounts) EXPECT_DOUBLE_EQ(each.amount, kInEach);
}

TEST(BinnedSums, EntriesAreBounded) {
  BinnedSums sums(256, 1000);
  constexpr uint32_t kKeys = 100;
  for (uint64_t at = 0; at < 1'000'000; at += 100) {
    sums.Add(static_cast<uint32_t>(at / 100) % kKeys, {Tsc{at}, Tsc{at + 1}}, 1);
  }
  size_t entries = 0;
  for (const std::vector<BinAmount>& amounts : sums.ByKey(kKeys)) {
    double sum = 0;
    for (const BinAmount& each : amounts) sum += each.amount;
    EXPECT_DOUBLE_EQ(sum, 100);
    entries += amounts.size();
  }
  EXPECT_LE(entries, 1000);
}

}  // namespace
}  // namespace xenoscope::correlate
