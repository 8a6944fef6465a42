// Tests the bounds of what PV guests did in Xen.
#include "correlate/pv_entries.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace xenoscope::correlate {
namespace {

class PvEntries : public testing::Test {
 protected:
  static Mark MarkAt(uint64_t at, uint32_t number, uint32_t vcpu = 0) {
    return {{DomainId{1}, VcpuId{vcpu}}, vcpu, PcpuId{0}, Tsc{at}, MarkKind::kHypercall, number};
  }
  struct PvEntry {
    Mark mark;
    TscRange at_most;
  };
  // Return the entry that is bounded thereby, if there is one.
  std::optional<PvEntry> Begin(const Mark& mark) {
    std::optional<PvEntry> ended;
    bounds_.OnMark(mark, [&](const Mark& of, TscRange at_most) { ended = {of, at_most}; });
    return ended;
  }
  std::optional<PvEntry> EndOf(TimelineState state, uint64_t at, uint32_t vcpu = 0) {
    RunstateInterval interval;
    interval.vcpu_index = vcpu;
    interval.range = {Tsc{0}, Tsc{at}};
    interval.state = state;
    std::optional<PvEntry> ended;
    bounds_.OnRunstateInterval(interval, [&](const Mark& of, TscRange at_most) {
      ended = {of, at_most};
    });
    return ended;
  }
  std::vector<PvEntry> Rest() {
    std::vector<PvEntry> rest;
    bounds_.Finish([&](const Mark& of, TscRange at_most) { rest.push_back({of, at_most}); });
    return rest;
  }
  static void Expect(const std::optional<PvEntry>& entry, uint32_t number, uint64_t begin,
                     uint64_t end) {
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->mark.number, number);
    EXPECT_EQ(entry->at_most, (TscRange{Tsc{begin}, Tsc{end}}));
  }

  TscRange sampled_{Tsc{1000}, Tsc{10'000}};
  PvEntryBounds bounds_{sampled_};
};

TEST_F(PvEntries, EndAtTheNextOfTheirVcpu) {
  EXPECT_FALSE(Begin(MarkAt(2000, 29)));
  EXPECT_FALSE(Begin(MarkAt(2100, 1, 1)));
  Expect(Begin(MarkAt(2500, 32)), 29, 2000, 2500);
  EXPECT_EQ(Rest().size(), 2);
}

TEST_F(PvEntries, EndWithTheRun) {
  EXPECT_FALSE(EndOf(TimelineState::kRunning, 1500));
  EXPECT_FALSE(Begin(MarkAt(2000, 29)));
  EXPECT_FALSE(EndOf(TimelineState::kBlocked, 2000));  // came late: it was before the run
  Expect(EndOf(TimelineState::kRunning, 2600), 29, 2000, 2600);
  EXPECT_FALSE(EndOf(TimelineState::kRunning, 3000));
  EXPECT_TRUE(Rest().empty());
}

TEST_F(PvEntries, CountWhatBeginsInTheRange) {
  EXPECT_FALSE(Begin(MarkAt(500, 1)));
  EXPECT_FALSE(Begin(MarkAt(9900, 2)));
  Expect(Begin(MarkAt(11'000, 3)), 2, 9900, 10'000);
  EXPECT_FALSE(EndOf(TimelineState::kRunning, 12'000));
}

// A run that ends with its last record is no interval, and a trace may contradict itself.
TEST_F(PvEntries, HaveNoLengthWhereNothingFollows) {
  EXPECT_FALSE(Begin(MarkAt(2000, 29)));
  Expect(Begin(MarkAt(1900, 30)), 29, 2000, 2000);
  const std::vector<PvEntry> rest = Rest();
  ASSERT_EQ(rest.size(), 1);
  Expect(rest.front(), 30, 1900, 1900);
}

}  // namespace
}  // namespace xenoscope::correlate
