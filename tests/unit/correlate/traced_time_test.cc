#include "correlate/placing/traced_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::UnorderedElementsAre;

constexpr VcpuRef kGuestVcpu{DomainId{2}, VcpuId{0}};
constexpr Context kGuestContext{ContextKind::kGuest};

struct Traced {
  Context context;
  Cycles cycles = 0;
  uint64_t stays = 0;
  bool operator==(const Traced&) const = default;
};

class TracedTimes : public testing::Test, public PlacingObserver {
 protected:
  void OnPlaced(const PlacedSample& /*placed*/) override {}
  void OnUnplaced(const recording::Sample& /*sample*/, UnplacedReason /*why*/) override {}
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    EXPECT_EQ(vcpu, kGuestVcpu);
    traced_.push_back({context, time.cycles, time.stays});
  }
  void Add(const Context& context, Cycles cycles, uint64_t stays = 0) {
    time_.Add(kGuestVcpu, context, {cycles, stays}, *this);
  }

  TracedTime time_;
  std::vector<Traced> traced_;
};

// A guest that reads a port and writes to it is in three contexts again and again.
TEST_F(TracedTimes, SumUpContextsThatAlternate) {
  Context read{ContextKind::kExit, false, 123};
  read.exit_kind = ExitKind::kPortRead;
  read.number = 0x84;
  Context write = read;
  write.exit_kind = ExitKind::kPortWrite;
  for (int i = 0; i < 100; ++i) {
    Add(kGuestContext, 10, 1);
    Add(read, 2);
    Add(kGuestContext, 5, 1);
    Add(write, 3);
  }
  EXPECT_TRUE(traced_.empty());
  time_.Flush(7, *this);
  EXPECT_THAT(traced_, UnorderedElementsAre(Traced{kGuestContext, 1500, 200}, Traced{read, 200, 0},
                                            Traced{write, 300, 0}));
}

// Nothing is lost where contexts are many.
TEST_F(TracedTimes, GiveAllTimeToTheObserver) {
  constexpr uint64_t kContexts = 1000;
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < kContexts; ++i) {
      Context context{ContextKind::kExit, false, 48};
      context.number = i << 12U;
      Add(context, 1);
    }
  }
  time_.Flush(7, *this);
  Cycles all = 0;
  for (const Traced& each : traced_) all += each.cycles;
  EXPECT_EQ(all, 3 * kContexts);
}

}  // namespace
}  // namespace xenoscope::correlate
