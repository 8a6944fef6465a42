#include "correlate/context_switches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::kCsched2RunqPos;
using trace::kCsched2UpdateLoad;
using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToRunnable;
using trace::kVmentry;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kD2V0 = trace::Vcpu(2, 0);
constexpr uint32_t kIdleV0 = trace::Vcpu(trace::kIdle, 0);

// "d1v0 to d2v0 [20, 25)", a line a switch.
class Finder final : public TimelineObserver {
 public:
  void Take(const trace::Item& item) {
    timeline_.Take(item);
    if (item.kind != trace::ItemKind::kRecord) return;
    const VcpuTrack* const current = timeline_.Current(item.record.pcpu);
    const bool may_end = std::ranges::find(ContextSwitches::kEvents, item.record.event) !=
                         ContextSwitches::kEvents.end();
    if (current == nullptr || !may_end) return;
    if (const auto found = switches_.Take(item.record, *current)) {
      lines.push_back(fmt::format("{} to {} [{}, {})", ToString(found->from->ref),
                                  ToString(found->to->ref), found->range.begin.value,
                                  found->range.end.value));
    }
  }
  void OnState(const VcpuTrack& vcpu, TimelineState before) override {
    switches_.OnState(vcpu, before);
  }
  std::vector<std::string> lines;

 private:
  Timeline timeline_{*this};
  ContextSwitches switches_;
};

std::vector<std::string> SwitchesIn(const TraceBuilder& trace) {
  Finder finder;
  trace::Stream(trace, finder);
  return finder.lines;
}

TEST(ContextSwitches, EndWhenTheVcpuThatStopsIsPutAway) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kCsched2UpdateLoad, 12, {}),
                   Rec(kRunningToRunnable, 20, {kD1V0}), Rec(kRunnableToRunning, 21, {kD2V0}),
                   Rec(kCsched2RunqPos, 25, {kD1V0, 1}), Rec(kCsched2UpdateLoad, 30, {}),
                   Rec(kRunningToBlocked, 40, {kD2V0}), Rec(kRunnableToRunning, 41, {kD1V0}),
                   Rec(kCsched2UpdateLoad, 44, {})});
  EXPECT_THAT(SwitchesIn(trace), ElementsAre("d1v0 to d2v0 [21, 25)", "d2v0 to d1v0 [41, 44)"));
}

TEST(ContextSwitches, NothingIsPutAwayAfterIdle) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kIdleV0}), Rec(kRunningToRunnable, 20, {kIdleV0}),
                   Rec(kRunnableToRunning, 21, {kD1V0}), Rec(kCsched2RunqPos, 25, {kD2V0, 0})});
  EXPECT_THAT(SwitchesIn(trace), IsEmpty());
}

TEST(ContextSwitches, RecordsBehindAnEntryAreOfSomethingElse) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 20, {kD1V0}),
                   Rec(kRunnableToRunning, 21, {kD2V0}), Rec(kVmentry, 23, {}),
                   Rec(kCsched2RunqPos, 25, {kD1V0, 1})});
  EXPECT_THAT(SwitchesIn(trace), IsEmpty());
}

TEST(ContextSwitches, LateRecordsAreOfSomethingElse) {
  constexpr uint64_t kLate = 21 + ContextSwitches::kMaxLength;
  for (const uint64_t end : {kLate, kLate + 1}) {
    TraceBuilder trace;
    trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 20, {kD1V0}),
                     Rec(kRunnableToRunning, 21, {kD2V0}), Rec(kCsched2RunqPos, end, {kD1V0, 1})});
    EXPECT_EQ(SwitchesIn(trace).size(), end == kLate ? 1U : 0U);
  }
}

TEST(ContextSwitches, AreOfOnePcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 20, {kD1V0})});
  trace.Window(1, {Rec(kRunnableToRunning, 21, {kD2V0}), Rec(kCsched2RunqPos, 25, {kD1V0, 1})});
  EXPECT_THAT(SwitchesIn(trace), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::correlate
