#include "correlate/placing/recent_timeline.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::correlate {
namespace {

using trace::Rec;

constexpr VcpuRef kHvmVcpu{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kPvVcpu{DomainId{2}, VcpuId{0}};

class NoSamples final : public PlacingObserver {
 public:
  void OnPlaced(const PlacedSample& /*placed*/) override {}
  void OnUnplaced(const recording::Sample& /*sample*/, UnplacedReason /*why*/) override {}
  void OnTraced(VcpuRef /*vcpu*/, Context /*context*/, ContextTime /*time*/) override {}
};

// Only drains of HVM guests are held, and only what their vCPUs did is looked up for them. The HVM
// vCPU is in the guest in [12, 20), in an exit in [20, 26), in the guest in [26, 30).
TEST(RecentTimelineTest, RemembersHvmVcpusAloneForHeldDrains) {
  trace::TraceBuilder bytes;
  bytes.Window(0, {Rec(trace::kRunnableToRunning, 10, {trace::kD1V0}), Rec(trace::kVmentry, 12, {}),
                   Rec(trace::kVmexit64, 20, {trace::kVmexitCpuid, 0x1000, 0}),
                   Rec(trace::kVmentry, 26, {}), Rec(trace::kRunningToRunnable, 30, {trace::kD1V0}),
                   Rec(trace::kRunnableToRunning, 30, {trace::Vcpu(2, 0)}),
                   Rec(trace::kRunningToBlocked, 60, {trace::Vcpu(2, 0)})});
  const PlacingOptions options;
  NoSamples observer;
  CrossChecks checks;
  RecentTimeline timeline(options, observer, checks, nullptr);
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "trace");
  ASSERT_TRUE(file.ok()) << file.status();
  trace::OrderedStream stream = file->Stream();
  while (const trace::Item* item = stream.Next()) timeline.Take(*item);
  const VcpuTrack* const hvm = timeline.Find(kHvmVcpu);
  const VcpuTrack* const pv = timeline.Find(kPvVcpu);
  ASSERT_TRUE(hvm != nullptr && pv != nullptr);
  const auto has = [&timeline](const VcpuTrack* track, uint64_t at) {
    return timeline.HistoryOf(*track).intervals.At(Tsc{at}) != nullptr;
  };
  const auto on_pcpu = [&timeline](uint64_t at) {
    const TimelineInterval* interval = timeline.IntervalOn(PcpuId{0}, Tsc{at});
    return interval != nullptr ? std::optional(std::pair(interval->vcpu, interval->context.kind))
                               : std::nullopt;
  };
  EXPECT_EQ(on_pcpu(15), std::pair(kHvmVcpu, ContextKind::kGuest));
  EXPECT_EQ(on_pcpu(20), std::pair(kHvmVcpu, ContextKind::kExit));
  EXPECT_EQ(on_pcpu(50), std::pair(kPvVcpu, ContextKind::kRunning));
  EXPECT_EQ(on_pcpu(60), std::nullopt);
  timeline.DropBefore(Tsc{30}, Tsc{22});
  EXPECT_EQ(on_pcpu(28), std::nullopt);
  EXPECT_EQ(on_pcpu(50), std::pair(kPvVcpu, ContextKind::kRunning));
  timeline.DropBefore(Tsc{100}, Tsc{22});
  EXPECT_FALSE(has(hvm, 15));
  EXPECT_TRUE(has(hvm, 25));
  EXPECT_TRUE(has(hvm, 28));
  EXPECT_FALSE(has(pv, 50));
  EXPECT_EQ(on_pcpu(50), std::nullopt);
  timeline.DropBefore(Tsc{100}, Tsc{100});
  EXPECT_FALSE(has(hvm, 28));
}

}  // namespace
}  // namespace xenoscope::correlate
