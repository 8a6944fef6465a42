#include "correlate/placing/nmi_offset.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace xenoscope::correlate {
namespace {

constexpr double kOffset = 1700;
constexpr double kHandler = 850;
// Cycles in Xen outside of the time from the exit's record to the entry's: on either side.
constexpr double kLeaving = 400;
constexpr double kEntering = 300;

// Learns from samples at random instants in Xen, of a guest that stays for `stay` cycles between
// records and leaves for `exit` cycles. No record comes while the sample is handled.
NmiOffsetEstimator Learn(size_t samples, double stay, double exit, double handler = kHandler) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> anywhere(-kLeaving, exit + kEntering);
  std::uniform_real_distribution<double> other(0.8, 1.2);
  NmiOffsetEstimator offsets;
  for (size_t i = 0; i < samples; ++i) {
    // The records come `handler` later than they would have.
    const double at = anywhere(random);
    std::vector<double> entries;
    std::vector<double> exits;
    exits.push_back(at < 0 ? handler : 0);
    entries.push_back(exits.back() + exit + (at >= 0 && at < exit ? handler : 0));
    for (int before = 0; before < 30; ++before) {
      entries.insert(entries.begin(), exits.front() - stay * other(random));
      exits.insert(exits.begin(), entries.front() - exit);
    }
    for (size_t k = 0; k < exits.size(); ++k) {
      for (const double record : {exits[k], entries[k]}) {
        const double behind = at + kOffset - record;
        if (behind >= 0 && behind < static_cast<double>(NmiOffsetEstimator::kLongest)) {
          offsets.AddRecord(static_cast<Cycles>(behind));
        }
      }
      const double ends = at + kOffset - exits[k];
      const double begins = std::max(0.0, at + kOffset - entries[k]);
      if (ends > begins) {
        offsets.AddInXen(static_cast<Cycles>(begins), static_cast<Cycles>(ends));
      }
    }
  }
  return offsets;
}

TEST(NmiOffset, IsWhereNoRecordCame) {
  // The stay is shorter and much longer than the exit.
  for (const double stay : {2000.0, 6000.0, 60000.0}) {
    const std::optional<NmiOffset> found = Learn(2000, stay, 5000).Estimate();
    ASSERT_TRUE(found) << stay;
    EXPECT_NEAR(static_cast<double>(found->offset), kOffset, 40) << stay;
    EXPECT_NEAR(static_cast<double>(found->handler), kHandler, 80) << stay;
  }
}

TEST(NmiOffset, IsUnknownWithoutEvidence) {
  EXPECT_FALSE(NmiOffsetEstimator().Estimate());
  EXPECT_FALSE(Learn(10, 6000, 5000).Estimate());
}

}  // namespace
}  // namespace xenoscope::correlate
