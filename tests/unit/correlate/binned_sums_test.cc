// Tests sums over time: amounts are kept when bins are merged, and their number is bounded.
#include "correlate/binned_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
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

TEST(BinnedSums, SaysWhichInstantsShareABin) {
  const BinnedSums sums;
  const uint64_t width = sums.width();
  const Tsc at{5 * width + 3};
  const auto are_in_bin = [&](uint64_t first, uint64_t second) {
    return sums.AreInBinOf(at, Tsc{first}, first ^ second);
  };
  EXPECT_TRUE(are_in_bin(5 * width, 6 * width - 1));
  EXPECT_FALSE(are_in_bin(5 * width, 6 * width));
  EXPECT_FALSE(are_in_bin(5 * width - 1, 5 * width));
  EXPECT_FALSE(are_in_bin(6 * width, 6 * width));
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
  sums.Finish();
  size_t entries = 0;
  for (const std::vector<BinAmount>& amounts : sums.ByKey(kKeys)) {
    double sum = 0;
    for (const BinAmount& each : amounts) sum += each.amount;
    EXPECT_DOUBLE_EQ(sum, 100);
    entries += amounts.size();
  }
  EXPECT_LE(entries, 1000);
}

// What a key has in the bin of the moment may wait beside its other data.
TEST(BinnedSums, OpenBinsMakeTheSameSums) {
  constexpr uint32_t kKeys = 20;
  BinnedSums expected(64, 300);
  BinnedSums sums(64, 300);
  std::vector<BinnedSums::Open> open(kKeys);
  uint64_t at = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    at += i % 7 == 0 ? 300 : 1;
    const uint64_t begin = i % 11 == 0 ? at / 2 : at;  // what ends late may begin early
    const uint64_t length = i % 3 == 0 ? 0 : i % 500;
    const TscRange when{Tsc{begin}, Tsc{begin + length}};
    const double amount = length == 0 ? 1 : static_cast<double>(length);
    const auto key = static_cast<uint32_t>(i * i % kKeys);
    expected.Add(key, when, amount);
    sums.Add(key, when, amount, open[key]);
  }
  for (uint32_t key = 0; key < kKeys; ++key) sums.Close(key, open[key]);
  sums.Finish();
  expected.Finish();
  EXPECT_EQ(sums.width(), expected.width());
  const auto all = sums.ByKey(kKeys);
  const auto all_expected = expected.ByKey(kKeys);
  for (uint32_t key = 0; key < kKeys; ++key) {
    ASSERT_EQ(all[key].size(), all_expected[key].size());
    for (size_t i = 0; i < all[key].size(); ++i) {
      EXPECT_EQ(all[key][i].bin, all_expected[key][i].bin);
      EXPECT_EQ(all[key][i].amount, all_expected[key][i].amount);
    }
  }
}

TEST(BinnedSums, MakesBinsAsLongAsTheyWillNeedToBe) {
  const auto width_after = [](double part_come) {
    BinnedSums sums(256, 1000);
    sums.SetPartCome(part_come);
    for (uint64_t bin = 0; bin < 130; ++bin) {
      for (uint32_t key = 0; key < 10; ++key) sums.Add(key, {Tsc{bin << 10}, Tsc{bin << 10}}, 1);
    }
    double total = 0;
    for (const auto& amounts : sums.ByKey(10)) {
      for (const BinAmount& each : amounts) total += each.amount;
    }
    EXPECT_EQ(total, 1300);
    return sums.width();
  };
  EXPECT_EQ(width_after(1), Cycles{1} << 11);
  EXPECT_EQ(width_after(0.3), Cycles{1} << 13) << "three times as many come";
  EXPECT_EQ(width_after(0), Cycles{1} << 14) << "not more than eight times as many are expected";
}

}  // namespace
}  // namespace xenoscope::correlate
