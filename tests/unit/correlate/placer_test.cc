#include "correlate/placing/placer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/hypercalls.h"
#include "tests/unit/correlate/fake_threads.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using trace::kBlockedToRunnable;
using trace::kCsched2RunqPos;
using trace::kD1V0;
using trace::kHvmInjVirq;
using trace::kHvmIoportRead;
using trace::kHvmNmi;
using trace::kLostRecords;
using trace::kOfflineToRunnable;
using trace::kPvHypercallV2;
using trace::kRunnableToBlocked;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToOffline;
using trace::kRunningToRunnable;
using trace::kVmentry;
using trace::kVmexit64;
using trace::kVmexitCpuid;
using trace::kVmexitHlt;
using trace::kVmexitIntr;
using trace::kVmexitIoio;
using trace::kVmxExceptionNmi;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kD2V0 = trace::Vcpu(2, 0);

class Samples : public SampleSource {
 public:
  explicit Samples(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  const Sample* Next() override { return next_ == samples_.size() ? nullptr : &samples_[next_++]; }

 private:
  std::vector<Sample> samples_;
  size_t next_ = 0;
};

// "d1v0 user 0x1100 twin: guest 1.00", a line a sample; and traced cycles.
class Lines : public PlacingObserver {
 public:
  void OnPlaced(const PlacedSample& placed) override {
    std::string line =
        fmt::format("{} {} {:#x} {}:", ToString(placed.vcpu), ToString(placed.mode()),
                    placed.address, ToString(placed.placement));
    for (const Place& place : placed.places) {
      if (place.to) line += fmt::format(" {}", ToString(*place.to));
      line += fmt::format(" {} {:.2f}", Text(place.context), place.weight);
    }
    lines.push_back(line);
  }
  void OnUnplaced(const Sample& sample, UnplacedReason why) override {
    lines.push_back(fmt::format("{} {}", ToString(sample.vcpu), ToString(why)));
  }
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    traced_[fmt::format("{} {}", ToString(vcpu), Text(context))] += time.cycles;
  }
  // "exit 7b io_read 60, 2 waits": the latter two where they are asked for.
  static std::string Text(const Context& context) {
    std::string text = KindText(context);
    if (context.exit_kind != ExitKind::kNoHandler) {
      text += fmt::format(" {} {:x}", ToString(context.exit_kind), context.number);
    }
    if (context.waiting != 0) text += fmt::format(", {} waits", context.waiting);
    if (context.wakeup == Wakeup::kOther) text += ", woken";
    if (context.wakeup >= Wakeup::kVector) {
      text += fmt::format(", woken by {:x}", context.wakeup - Wakeup::kVector);
    }
    if (context.thread != 0) text += fmt::format(", t{}", context.thread);
    return text;
  }
  static std::string KindText(const Context& context) {
    switch (context.kind) {
      case ContextKind::kRunning:
        return "running";
      case ContextKind::kGuest:
        return context.nested ? "nested guest" : "guest";
      case ContextKind::kExit:
        return fmt::format("exit {:x}", context.reason);
      case ContextKind::kResume:
        return "resume";
      case ContextKind::kTransition:
        return "transition";
      case ContextKind::kLost:
        return "lost";
      case ContextKind::kSwitch:
        return "switch";
      case ContextKind::kUnsampledSwitch:
        return "unsampled switch";
      case ContextKind::kUntraced:
        return "untraced";
    }
    return "?";
  }
  // "d1v0 guest 36", a line a context of a vCPU.
  std::vector<std::string> traced() const {
    std::vector<std::string> all;
    for (const auto& [what, cycles] : traced_) all.push_back(fmt::format("{} {}", what, cycles));
    return all;
  }
  std::vector<std::string> lines;

 private:
  std::map<std::string, Cycles> traced_;
};

Sample Bracketed(uint16_t domain, Mode mode, Address address, uint64_t begin, uint64_t end) {
  Sample sample;
  sample.vcpu = {DomainId{domain}, VcpuId{0}};
  sample.mode = mode;
  sample.address = address;
  sample.when = {Tsc{begin}, Tsc{end}};
  return sample;
}

// Traces of tests are so short that transitions would be most of their time.
PlacingOptions WithoutTransitions() {
  PlacingOptions options;
  options.cycles_per_transition = 0;
  return options;
}

Lines LinesOf(const TraceBuilder& bytes, std::vector<Sample> samples,
              PlacingCounts* counts = nullptr, trace::Vendor vendor = trace::Vendor::kSvm,
              LoggedRip rule = LoggedRip::kOfLastEntry,
              PlacingOptions options = WithoutTransitions()) {
  options.sampled = {Tsc{0}, Tsc{1'000'000}};
  for (const Sample& sample : samples) {
    options.longest_bracket = std::max(options.longest_bracket, sample.when.Length());
  }
  options.vendor = vendor;
  options.logged_rip = rule;
  Samples source(std::move(samples));
  Lines lines;
  Placer placer(options, source, lines);
  trace::Stream(bytes, placer);
  EXPECT_TRUE(placer.Finish().ok());
  if (counts != nullptr) *counts = placer.counts();
  return lines;
}

// An HVM guest: enters at 12, CPUID exit [20, 26), NMI exit [30, 32), interrupt exit [40, 44).
TraceBuilder HvmGuest() {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 26, {}),
                   Rec(kVmexit64, 30, {kSvmExitNmi, 0x1100, 0}), Rec(kHvmNmi, {}),
                   Rec(kVmentry, 32, {}), Rec(kVmexit64, 40, {kVmexitIntr, 0x1200, 0}),
                   Rec(kVmentry, 44, {}), Rec(kRunningToBlocked, 60, {kD1V0})});
  return trace;
}

TEST(Placing, MatchesNmiExitAndRepairsAddress) {
  PlacingCounts counts;
  const Lines lines = LinesOf(HvmGuest(), {Bracketed(1, Mode::kUser, 0x1002, 15, 50)}, &counts);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1100 twin: guest 1.00"));
  EXPECT_EQ(counts.repaired, 1U);
  EXPECT_EQ(counts.nmi_exits, 1U);
}

// A guest enters its own guest, which leaves by CPUID at 0x1000, goes on at 0x1002, and has the NMI
// at 0x1100. The guest's own exit to run it again comes between.
TEST(Placing, NestedGuestIsAContextOfItsOwn) {
  constexpr uint32_t kVmexitVmrun = 0x80;
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry | trace::kNestedBit, 12, {}),
          Rec(kVmexit64 | trace::kNestedBit, 20, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 24, {}),
          Rec(kVmexit64, 34, {kVmexitVmrun, 0x8800, 0}), Rec(kVmentry | trace::kNestedBit, 36, {}),
          Rec(kVmexit64 | trace::kNestedBit, 40, {kSvmExitNmi, 0x1100, 0}), Rec(kHvmNmi, {}),
          Rec(kVmentry | trace::kNestedBit, 42, {}), Rec(kRunningToBlocked, 60, {kD1V0})});
  const Lines lines = LinesOf(trace, {Bracketed(1, Mode::kUser, 0x1002, 15, 50)});
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1100 twin: nested guest 1.00"));
  EXPECT_THAT(lines.traced(),
              UnorderedElementsAre("d1v0 resume 2", "d1v0 guest 10", "d1v0 nested guest 30",
                                   "d1v0 exit 72 4", "d1v0 exit 80 2", "d1v0 exit 61 2"));
}

TEST(Placing, GuestSamplesDoNotMatchNmiExits) {
  Sample sample = Bracketed(1, Mode::kUser, 0x1002, 15, 50);
  sample.timed = true;
  PlacingCounts counts;
  EXPECT_THAT(LinesOf(HvmGuest(), {sample}, &counts).lines,
              ElementsAre("d1v0 user 0x1002 bracketed: guest 1.00"));
  EXPECT_EQ(counts.repaired + counts.stale, 0U);
  sample.when = {Tsc{100}, Tsc{200}};
  EXPECT_THAT(LinesOf(HvmGuest(), {sample}).lines, ElementsAre("d1v0 outside_trace"));
  sample.vcpu.domain = DomainId{9};
  sample.when = {Tsc{15}, Tsc{50}};
  EXPECT_THAT(LinesOf(HvmGuest(), {sample}).lines, ElementsAre("d9v0 unknown_vcpu"));
}

// Xen switches from d1 to d2 in [31, 41): that is time of d2, but `current` is still d1's vCPU.
TEST(Placing, SwitchIsTimeOfOneVcpuAndHasSamplesOfTheOther) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitCpuid, 0x1000, 0}),
                   Rec(kRunningToRunnable, 30, {kD1V0}), Rec(kRunnableToRunning, 31, {kD2V0}),
                   Rec(kCsched2RunqPos, 41, {kD1V0, 1}), Rec(kRunningToBlocked, 61, {kD2V0})});
  const Lines lines =
      LinesOf(trace, {Bracketed(1, Mode::kXen, 7, 15, 60), Bracketed(1, Mode::kUser, 8, 15, 60),
                      Bracketed(2, Mode::kXen, 7, 15, 61), Bracketed(2, Mode::kKernel, 8, 15, 61)});
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 xen 0x7 bracketed: exit 72 0.50 d2v0 switch 0.50",
                                       "d1v0 user 0x8 bracketed: guest 1.00",
                                       "d2v0 xen 0x7 bracketed: running 1.00",
                                       "d2v0 kernel 0x8 bracketed: running 1.00"));
  EXPECT_THAT(lines.traced(),
              UnorderedElementsAre("d1v0 resume 2", "d1v0 guest 8", "d1v0 exit 72 10",
                                   "d2v0 switch 10", "d2v0 running 20"));
}

// Samples of switches are logged for the domain that stops: without samples of it in Xen, there are
// none.
TEST(Placing, SwitchesFromDomainsWithoutSamplesInXenAreApart) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 30, {kD1V0}),
                   Rec(kRunnableToRunning, 31, {kD2V0}), Rec(kCsched2RunqPos, 41, {kD1V0, 1}),
                   Rec(kRunningToRunnable, 61, {kD2V0}), Rec(kRunnableToRunning, 62, {kD1V0}),
                   Rec(kCsched2RunqPos, 65, {kD2V0, 1}), Rec(kRunningToBlocked, 80, {kD1V0})});
  const Lines of_d2 =
      LinesOf(trace, {Bracketed(1, Mode::kKernel, 8, 15, 30), Bracketed(2, Mode::kXen, 7, 15, 70)});
  EXPECT_THAT(of_d2.lines, ElementsAre("d1v0 kernel 0x8 bracketed: running 1.00",
                                       "d2v0 xen 0x7 bracketed: running 0.87 d1v0 switch 0.13"));
  EXPECT_THAT(of_d2.traced(), UnorderedElementsAre("d1v0 running 35", "d1v0 switch 3",
                                                   "d2v0 running 20", "d2v0 unsampled switch 10"));
}

// Samples whose instants are known are of the vCPU that they name, not of the one that starts.
TEST(Placing, InstantsBehindAStopAreNotOfTheSwitch) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 30, {kD1V0}),
                   Rec(kRunnableToRunning, 31, {kD2V0}), Rec(kCsched2RunqPos, 41, {kD1V0, 1}),
                   Rec(kRunningToBlocked, 61, {kD2V0})});
  EXPECT_THAT(LinesOf(trace, {Bracketed(1, Mode::kKernel, 7, 35, 36)}).lines,
              ElementsAre("d1v0 not_running"));
}

TEST(Placing, OnIntelLoggedRipIsExitRip) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmxExceptionNmi, 0x1000, 0}), Rec(kVmentry, 26, {}),
                   Rec(kVmexit64, 30, {kVmxExceptionNmi, 0x1000, 0}), Rec(kHvmNmi, {}),
                   Rec(kVmentry, 32, {}), Rec(kRunningToBlocked, 60, {kD1V0})});
  PlacingCounts counts;
  const Lines lines = LinesOf(
      trace, {Bracketed(1, Mode::kUser, 0x1000, 15, 50), Bracketed(1, Mode::kUser, 7, 15, 50)},
      &counts, trace::Vendor::kVmx, LoggedRip::kOfExit);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1000 twin: guest 1.00",
                                       "d1v0 user 0x7 bracketed: guest 1.00"));
  EXPECT_EQ(counts.repaired, 0U);
}

TEST(Placing, StaleRipOfAnotherExitIsXenLeavingTheGuest) {
  PlacingOptions options;
  options.stgi = 0xe;
  // The guest was entered at 0x1100 for the last time before the interrupt exit.
  const Lines lines = LinesOf(
      HvmGuest(),
      {Bracketed(1, Mode::kUser, 0x1002, 15, 50), Bracketed(1, Mode::kUser, 0x1100, 15, 50)},
      nullptr, trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1100 twin: guest 1.00",
                                       "d1v0 xen 0xe at_exit: transition 1.00"));
}

TEST(Placing, XenSamplesAreWeightedByExitLength) {
  // CPUID 6 cycles, NMI 2, interrupt 4; before and after the guest's sample the twin decides.
  EXPECT_THAT(LinesOf(HvmGuest(), {Bracketed(1, Mode::kXen, 0xf, 15, 50)}).lines,
              ElementsAre("d1v0 xen 0xf bracketed: exit 72 0.50 exit 61 0.17 exit 60 0.33"));
  EXPECT_THAT(
      LinesOf(HvmGuest(),
              {Bracketed(1, Mode::kXen, 0xf, 15, 50), Bracketed(1, Mode::kUser, 0x1002, 15, 50),
               Bracketed(1, Mode::kXen, 0xf, 15, 50)})
          .lines,
      ElementsAre("d1v0 xen 0xf bracketed: exit 72 1.00", "d1v0 user 0x1100 twin: guest 1.00",
                  "d1v0 xen 0xf bracketed: exit 61 0.33 exit 60 0.67"));
}

// Each of the guest's stays [12, 20), [26, 30), [32, 40), [44, 60) begins and ends with 3 cycles
// that may be a transition of 3 cycles.
TEST(Placing, XenSamplesAreInTransitionsToo) {
  PlacingOptions options;
  options.cycles_per_transition = 3;
  const auto place = [&options](std::vector<Sample> samples) {
    return LinesOf(HvmGuest(), std::move(samples), nullptr, trace::Vendor::kSvm,
                   LoggedRip::kOfLastEntry, options);
  };
  // 3 cycles of the first stay, 6 of the CPUID exit; of the second stay half of 2 near its begin
  // and of 1 near its end.
  EXPECT_THAT(place({Bracketed(1, Mode::kXen, 0xf, 12, 28)}).lines,
              ElementsAre("d1v0 xen 0xf bracketed: transition 0.43 exit 72 0.57"));
  // In the middle of a stay there is no transition.
  EXPECT_THAT(place({Bracketed(1, Mode::kXen, 0xf, 47, 57)}).lines,
              ElementsAre("d1v0 mode_disagrees"));
  // A sample of the guest is not in a transition.
  EXPECT_THAT(place({Bracketed(1, Mode::kUser, 0x1, 12, 14)}).lines,
              ElementsAre("d1v0 user 0x1 bracketed: guest 1.00"));
  Sample instant = Bracketed(1, Mode::kXen, 0xf, 13, 14);
  EXPECT_THAT(place({instant}).lines, ElementsAre("d1v0 xen 0xf instant: transition 1.00"));
}

TEST(Placing, RankNarrowsPlaceInBracket) {
  // Of two instants in 12 cycles the earlier is in the first 6 with 1 - (1/2)^2, in the last 4 with
  // (1/3)^2; the later in the first 6 with (1/2)^2, and before the last 4 with (2/3)^2.
  const Sample xen = Bracketed(1, Mode::kXen, 0xf, 15, 50);
  EXPECT_THAT(LinesOf(HvmGuest(), {xen, xen}).lines,
              ElementsAre("d1v0 xen 0xf bracketed: exit 72 0.75 exit 61 0.14 exit 60 0.11",
                          "d1v0 xen 0xf bracketed: exit 72 0.25 exit 61 0.19 exit 60 0.56"));
  // Of very many, the first are not where the last ones are; neighbours are placed alike.
  const Lines many = LinesOf(HvmGuest(), std::vector<Sample>(1600, xen));
  EXPECT_EQ(many.lines.front(), "d1v0 xen 0xf bracketed: exit 72 1.00 exit 61 0.00");
  EXPECT_EQ(many.lines.front(), many.lines[99]);
  EXPECT_NE(many.lines.front(), many.lines[800]);
  EXPECT_EQ(many.lines.back(), "d1v0 xen 0xf bracketed: exit 72 0.00 exit 61 0.00 exit 60 1.00");
}

TEST(Placing, ReportsTracedTimeOfSampledRange) {
  EXPECT_THAT(LinesOf(HvmGuest(), {}).traced(),
              ElementsAre("d1v0 exit 60 4", "d1v0 exit 61 2", "d1v0 exit 72 6", "d1v0 guest 36",
                          "d1v0 resume 2"));
}

TEST(Placing, PlacesPvSamplesInRunningIntervals) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kPvHypercallV2, 15, {hypercall::kSchedOp}),
          Rec(kRunningToRunnable, 20, {kD1V0}), Rec(kRunnableToRunning, 20, {kD2V0}),
          Rec(kRunningToBlocked, 90, {kD2V0})});
  EXPECT_THAT(
      LinesOf(trace, {Bracketed(1, Mode::kXen, 1, 12, 40), Bracketed(1, Mode::kXen, 1, 25, 40),
                      Bracketed(2, Mode::kUser, 1, 12, 40)})
          .lines,
      ElementsAre("d1v0 xen 0x1 bracketed: running 1.00", "d1v0 not_running",
                  "d2v0 user 0x1 bracketed: running 1.00"));
}

TEST(Placing, PlacesInOpenInterval) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kPvHypercallV2, 50, {hypercall::kSchedOp})});
  trace.Window(
      1, {Rec(kRunnableToRunning, 11, {kD2V0}), Rec(kPvHypercallV2, 900, {hypercall::kSchedOp})});
  EXPECT_THAT(LinesOf(trace, {Bracketed(1, Mode::kXen, 1, 20, 40)}).lines,
              ElementsAre("d1v0 xen 0x1 bracketed: running 1.00"));
}

TEST(Placing, ReportsUnplacedReason) {
  PlacingCounts counts;
  const Lines lines =
      LinesOf(HvmGuest(),
              {Bracketed(1, Mode::kXen, 1, 2, 8), Bracketed(7, Mode::kXen, 1, 15, 30),
               Bracketed(1, Mode::kXen, 1, 27, 29), Bracketed(1, Mode::kXen, 1, 70, 80)},
              &counts);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 outside_trace", "d7v0 unknown_vcpu",
                                       "d1v0 mode_disagrees", "d1v0 outside_trace"));
  EXPECT_EQ(counts.samples, 4U);
  EXPECT_EQ(counts.Unplaced(), 4U);
}

TEST(Placing, PlacesInLostTime) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kPvHypercallV2, 200, {hypercall::kSchedOp}),
          Rec(kLostRecords, 400, {9, 1, 200, 0}), Rec(kPvHypercallV2, 410, {hypercall::kSchedOp}),
          Rec(kRunningToBlocked, 500, {kD1V0})});
  PlacingCounts counts;
  const Lines lines =
      LinesOf(trace, {Bracketed(1, Mode::kXen, 1, 250, 300), Bracketed(1, Mode::kXen, 1, 350, 450)},
              &counts);
  EXPECT_THAT(lines.lines, UnorderedElementsAre("d1v0 xen 0x1 bracketed: lost 1.00",
                                                "d1v0 xen 0x1 bracketed: lost 0.50 running 0.50"));
  EXPECT_EQ(counts.lost_records, 9U);
  EXPECT_EQ(counts.lost_time, 200U);
}

TEST(Placing, CountsWhatCouldNotBeRead) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kRunningToBlocked, 500, {})});
  trace.Window(0, {{0, 0, 0}, Rec(kRunningToBlocked, 600, {kD1V0})});
  PlacingCounts counts;
  LinesOf(trace, {Bracketed(1, Mode::kXen, 1, 250, 300)}, &counts);
  EXPECT_EQ(counts.unread.malformed, 1U);
  EXPECT_EQ(counts.unread.damages, 1U);
  EXPECT_EQ(counts.unread.damaged_bytes, 12U);
}

// From 400 on the one pCPU is seen again, and it runs d2v0: d1v0 waits. It is known to run for 300
// of 900 cycles, so that 50 lost ones weigh a third, against 100 of running.
TEST(Placing, UnseenVcpuDoesNotRunAfterLossEnds) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kPvHypercallV2, 200, {hypercall::kSchedOp}),
          Rec(kLostRecords, 400, {9, 2, 200, 0}), Rec(kRunningToRunnable, 1000, {kD2V0}),
          Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToBlocked, 1200, {kD1V0})});
  EXPECT_THAT(
      LinesOf(trace, {Bracketed(1, Mode::kXen, 1, 350, 900), Bracketed(1, Mode::kXen, 1, 500, 950),
                      Bracketed(1, Mode::kXen, 1, 350, 1100)})
          .lines,
      ElementsAre("d1v0 xen 0x1 bracketed: lost 1.00", "d1v0 trace_lost",
                  "d1v0 xen 0x1 bracketed: lost 0.14 running 0.86"));
}

TEST(Placing, PlacesInstantExactly) {
  Sample guest = Bracketed(1, Mode::kUser, 0x1, 14, 15);
  // vPMU forgets on whose behalf Xen ran; the trace knows.
  Sample xen = Bracketed(kDomXen.value, Mode::kXen, 0xf, 22, 23);
  xen.pcpu = PcpuId{0};
  Sample idle = Bracketed(kDomXen.value, Mode::kXen, 0xf, 61, 62);
  idle.pcpu = PcpuId{0};
  EXPECT_THAT(LinesOf(HvmGuest(), {guest, xen, idle}).lines,
              ElementsAre("d1v0 user 0x1 instant: guest 1.00", "d1v0 xen 0xf instant: exit 72 1.00",
                          fmt::format("{} outside_trace", ToString(VcpuRef{kDomXen, VcpuId{0}}))));
}

TEST(Placing, SampleOfUnknownDomainBelongsToCurrentVcpu) {
  Sample xen = Bracketed(kDomXen.value, Mode::kXen, 0xf, 21, 24);
  Sample guest = Bracketed(kDomXen.value, Mode::kUser, 0x1, 13, 16);
  xen.pcpu = guest.pcpu = PcpuId{0};
  xen.timed = guest.timed = true;
  EXPECT_THAT(
      LinesOf(HvmGuest(), {guest, xen}).lines,
      ElementsAre("d1v0 user 0x1 instant: guest 1.00", "d1v0 xen 0xf instant: exit 72 1.00"));
}

// An HVM and a PV guest run until dom0, which was woken at 5.8 million cycles, runs at 9 million.
TraceBuilder VirtualInterrupt() {
  constexpr uint32_t kD0V0 = trace::Vcpu(0, 0);
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunningToBlocked, 1'000'000, {kD0V0}), Rec(kRunnableToRunning, 1'000'000, {kD1V0}),
          Rec(kVmentry, 1'000'100, {}), Rec(kBlockedToRunnable, 5'800'000, {kD0V0}),
          Rec(kVmexit64, 5'900'000, {kVmexitIntr, 0x1000, 0}),
          Rec(kRunningToRunnable, 6'000'000, {kD1V0}), Rec(kRunnableToRunning, 6'000'000, {kD2V0}),
          Rec(kRunningToRunnable, 9'000'000, {kD2V0}), Rec(kRunnableToRunning, 9'000'000, {kD0V0}),
          Rec(kRunningToBlocked, 12'000'000, {kD0V0})});
  return trace;
}

std::vector<std::string> PlaceVirtualInterrupts(
    const std::vector<std::tuple<Mode, Address, uint64_t>>& taken, Address stgi = 0) {
  std::vector<Sample> samples;
  for (const auto& [mode, address, begin] : taken) {
    samples.push_back(Bracketed(kDomXen.value, mode, address, begin, begin + 10));
    samples.back().pcpu = PcpuId{0};
    samples.back().timed = true;
  }
  PlacingOptions options = WithoutTransitions();
  options.longest_bracket = kLongestVirtualInterrupt;
  options.stgi = stgi;
  return LinesOf(VirtualInterrupt(), samples, nullptr, trace::Vendor::kSvm, LoggedRip::kOfLastEntry,
                 options)
      .lines;
}

TEST(Placing, VirtualInterruptHitGuestBeforeDom0Ran) {
  EXPECT_THAT(PlaceVirtualInterrupts({{Mode::kUser, 0x1000, 9'020'000}}),
              ElementsAre("d1v0 user 0x1000 bracketed: guest 1.00"));
  // An HVM guest would have had an exit at the address.
  EXPECT_THAT(PlaceVirtualInterrupts({{Mode::kUser, 0x2000, 9'020'000}}),
              ElementsAre("d2v0 user 0x2000 bracketed: running 1.00"));
  EXPECT_THAT(PlaceVirtualInterrupts({{Mode::kXen, 0xf, 9'020'000}}),
              ElementsAre("d2v0 xen 0xf bracketed: running 1.00"));
}

// A counter's interrupt of an HVM guest on AMD is an exit. Xen takes it at its next STGI.
TEST(Placing, VirtualInterruptAtStgiHitHvmGuest) {
  constexpr Address kStgi = 0xffff82d040204593;
  const std::vector<std::tuple<Mode, Address, uint64_t>> behind_stgi = {
      {Mode::kXen, kStgi + 1, 9'020'000}};
  EXPECT_THAT(PlaceVirtualInterrupts(behind_stgi, kStgi),
              ElementsAre("d1v0 user 0x1000 bracketed: guest 1.00"));
  // Xen's symbols do not say where the STGI is.
  EXPECT_THAT(PlaceVirtualInterrupts(behind_stgi, 0),
              ElementsAre("d2v0 xen 0xffff82d040204594 bracketed: running 1.00"));
  // The interrupt before this one was dom0's: no guest ran since then.
  EXPECT_THAT(PlaceVirtualInterrupts(
                  {{Mode::kXen, 0xf, 9'020'000}, {Mode::kXen, kStgi + 1, 9'500'000}}, kStgi),
              ElementsAre("d2v0 xen 0xf bracketed: running 1.00",
                          "d0v0 xen 0xffff82d040204594 bracketed: running 1.00"));
}

TEST(Placing, VirtualInterruptHitXenForDom0) {
  // It came long after dom0 had begun to run, or after another sample in that timeslice.
  EXPECT_THAT(PlaceVirtualInterrupts({{Mode::kXen, 0xf, 9'500'000}}),
              ElementsAre("d0v0 xen 0xf bracketed: running 1.00"));
  EXPECT_THAT(
      PlaceVirtualInterrupts({{Mode::kUser, 0x2000, 9'020'000}, {Mode::kXen, 0xf, 9'030'000}}),
      ElementsAre("d2v0 user 0x2000 bracketed: running 1.00",
                  "d0v0 xen 0xf bracketed: running 1.00"));
  EXPECT_THAT(
      PlaceVirtualInterrupts({{Mode::kXen, 0xf, 9'020'000}, {Mode::kUser, 0x2000, 9'030'000}}),
      ElementsAre("d2v0 xen 0xf bracketed: running 1.00",
                  fmt::format("{} not_running", ToString(VcpuRef{kDomXen, VcpuId{0}}))));
}

TEST(Placing, InstantWithoutCurrentVcpuIsUnplaced) {
  Sample sample = Bracketed(0x7ff4, Mode::kUser, 0x1, 22, 23);
  sample.pcpu = PcpuId{3};
  EXPECT_THAT(LinesOf(HvmGuest(), {sample}).lines, ElementsAre("d32756v0 unknown_vcpu"));
}

// An HVM guest that is stopped twice to be read: in the guest at 20, by an interrupt; and in the
// exit of a CPUID that began at 40.
TraceBuilder StoppedTwice() {
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                Rec(kVmexit64, 20, {kVmexitIntr, 0x1000, 0}), Rec(kRunningToOffline, 22, {kD1V0}),
                Rec(kOfflineToRunnable, 26, {kD1V0}), Rec(kRunnableToRunning, 27, {kD1V0}),
                Rec(kVmentry, 30, {}), Rec(kVmexit64, 40, {kVmexitCpuid, 0x2000, 0}),
                Rec(kRunningToOffline, 45, {kD1V0}), Rec(kOfflineToRunnable, 50, {kD1V0}),
                Rec(kRunnableToRunning, 52, {kD1V0}), Rec(kVmentry, 54, {}),
                Rec(kRunningToBlocked, 60, {kD1V0})});
  return trace;
}

Sample Stopped(uint64_t begin, uint64_t end) {
  Sample sample = Bracketed(1, Mode::kUser, 0x1000, begin, end);
  sample.stopped = true;
  return sample;
}

// Two port accesses and an exit without a handler's record, while d2v0 waits from 30 to 50.
TraceBuilder PortsWhileOneWaits() {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitIoio, 0x1000, 0}), Rec(kHvmIoportRead, {0x60}),
                   Rec(kVmentry, 26, {}), Rec(kBlockedToRunnable, 30, {kD2V0}),
                   Rec(kVmexit64, 40, {kVmexitIoio, 0x1000, 0}), Rec(kHvmIoportRead, {0x70}),
                   Rec(kRunnableToBlocked, 50, {kD2V0}), Rec(kVmentry, 52, {}),
                   Rec(kVmexit64, 60, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 62, {}),
                   Rec(kRunningToBlocked, 70, {kD1V0})});
  return trace;
}

TEST(Placing, SplitsContextsBySubreason) {
  PlacingOptions options = WithoutTransitions();
  options.by_subreason = true;
  const Lines lines = LinesOf(PortsWhileOneWaits(), {Bracketed(1, Mode::kXen, 0xf, 15, 65)},
                              nullptr, trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 xen 0xf bracketed: exit 7b io_read 60 0.30 "
                                       "exit 7b io_read 70 0.60 exit 72 0.10"));
  EXPECT_THAT(lines.traced(),
              ElementsAre("d1v0 exit 72 2", "d1v0 exit 7b io_read 60 6",
                          "d1v0 exit 7b io_read 70 12", "d1v0 guest 38", "d1v0 resume 2"));
}

// d1v0 reads a port, and waits for its device model; the record of what it read comes at the end.
// It does so twice. The second time there is no answer in the trace.
TraceBuilder ReadsPortOfDeviceModel() {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitIoio, 0x1000, 0}),
                   Rec(kRunningToOffline, 26, {kD1V0}), Rec(kOfflineToRunnable, 40, {kD1V0}),
                   Rec(kRunnableToRunning, 41, {kD1V0}), Rec(kHvmIoportRead, {0x1f7, 0}),
                   Rec(kVmentry, 45, {}), Rec(kVmexit64, 50, {kVmexitIoio, 0x1000, 0}),
                   Rec(kRunningToOffline, 53, {kD1V0}), Rec(kRunnableToRunning, 60, {kD2V0})});
  return trace;
}

TEST(Placing, WaitsForWhatExitIsAbout) {
  PlacingOptions options = WithoutTransitions();
  options.by_subreason = true;
  // The first bracket ends while the vCPU waits.
  const Lines lines =
      LinesOf(ReadsPortOfDeviceModel(),
              {Bracketed(1, Mode::kXen, 0xf, 15, 30), Bracketed(1, Mode::kXen, 0xf, 30, 60)},
              nullptr, trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 xen 0xf bracketed: exit 7b io_read 1f7 1.00",
                                       "d1v0 xen 0xf bracketed: exit 7b io_read 1f7 0.57 "
                                       "exit 7b 0.43"));
  EXPECT_THAT(lines.traced(), ElementsAre("d1v0 exit 7b 3", "d1v0 exit 7b io_read 1f7 10",
                                          "d1v0 guest 13", "d1v0 resume 2"));
}

// An answer that takes longer than is waited for leaves the part before it without its port.
TEST(Placing, DoesNotWaitForeverForWhatExitIsAbout) {
  constexpr uint64_t kLong = uint64_t{1} << 29;
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitIoio, 0x1000, 0}),
                   Rec(kRunningToOffline, 26, {kD1V0}), Rec(kOfflineToRunnable, kLong, {kD1V0}),
                   Rec(kRunnableToRunning, kLong + 1, {kD1V0}), Rec(kHvmIoportRead, {0x1f7, 0}),
                   Rec(kVmentry, kLong + 5, {}), Rec(kRunningToRunnable, kLong + 9, {kD1V0})});
  PlacingOptions options = WithoutTransitions();
  options.by_subreason = true;
  options.longest_bracket = kLong;
  const Lines lines = LinesOf(trace, {Bracketed(1, Mode::kXen, 0xf, 15, 30)}, nullptr,
                              trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 xen 0xf bracketed: exit 7b 1.00"));
  EXPECT_THAT(lines.traced(), ElementsAre("d1v0 exit 7b 6", "d1v0 guest 8", "d1v0 resume 2"));
}

TEST(Placing, SplitsContextsByRunQueue) {
  PlacingOptions options = WithoutTransitions();
  options.by_waiting = true;
  const Lines lines = LinesOf(PortsWhileOneWaits(),
                              {Bracketed(1, Mode::kXen, 0xf, 15, 65),
                               // It met the exit at 40.
                               Bracketed(1, Mode::kUser, 0x1002, 15, 65)},
                              nullptr, trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines.at(0),
              "d1v0 xen 0xf bracketed: exit 7b 0.40 exit 7b, 2 waits 0.50 "
              "exit 72 0.10");
  // Observers get all time, even of a vCPU that waits: guest [26, 40) and exit [40, 52) in two
  // parts each.
  EXPECT_THAT(lines.traced(),
              ElementsAre("d1v0 exit 72 2", "d1v0 exit 7b 8", "d1v0 exit 7b, 2 waits 10",
                          "d1v0 guest 28", "d1v0 guest, 2 waits 10", "d1v0 resume 2"));
}

// d1v0 is running as the trace begins and halts; vector 0xf3 wakes it, then 0xec comes while it is
// awake; it halts again, and wakes for something that no record shows.
TEST(Placing, SplitsContextsByWakeup) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}),
                   Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitHlt, 0x1000, 0}),
                   Rec(kRunningToBlocked, 22, {kD1V0}),
                   Rec(kBlockedToRunnable, 30, {kD1V0}),
                   Rec(kRunnableToRunning, 31, {kD1V0}),
                   Rec(kHvmInjVirq, {0xf3, 0}),
                   Rec(kVmentry, 34, {}),
                   Rec(kVmexit64, 40, {kVmexitCpuid, 0x1100, 0}),
                   Rec(kHvmInjVirq, {0xec, 0}),
                   Rec(kVmentry, 44, {}),
                   Rec(kVmexit64, 50, {kVmexitHlt, 0x1000, 0}),
                   Rec(kRunningToBlocked, 52, {kD1V0}),
                   Rec(kBlockedToRunnable, 60, {kD1V0}),
                   Rec(kRunnableToRunning, 61, {kD1V0}),
                   Rec(kVmentry, 63, {}),
                   Rec(kVmexit64, 70, {kVmexitCpuid, 0x1100, 0}),
                   Rec(kHvmInjVirq, {0xec, 0}),
                   Rec(kVmentry, 72, {}),
                   Rec(kVmexit64, 75, {kVmexitHlt, 0x1000, 0}),
                   Rec(kRunningToBlocked, 76, {kD1V0})});
  PlacingOptions options = WithoutTransitions();
  options.by_wakeup = true;
  const Lines lines = LinesOf(trace, {Bracketed(1, Mode::kXen, 0xf, 15, 75)}, nullptr,
                              trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.traced(),
              ElementsAre("d1v0 exit 72, woken 2", "d1v0 exit 72, woken by f3 4", "d1v0 exit 78 2",
                          "d1v0 exit 78, woken 3", "d1v0 exit 78, woken by f3 5", "d1v0 guest 8",
                          "d1v0 guest, woken 10", "d1v0 guest, woken by f3 12", "d1v0 resume 2"));
  EXPECT_THAT(lines.lines.at(0),
              "d1v0 xen 0xf bracketed: exit 78 0.13 exit 78, woken by f3 0.33 exit 72, woken by f3 "
              "0.27 exit 78, woken 0.13 exit 72, woken 0.13");
}

constexpr VcpuRef kD1Vcpu{DomainId{1}, VcpuId{0}};

// The guest puts thread 2 on its vCPU at 28, while it runs, thread 1 at 35, and thread 2 again in
// the last exit's time.
TEST(Placing, SplitsContextsByThread) {
  const std::vector<ThreadSwitch> switches{
      {kD1Vcpu, Tsc{1}, 1}, {kD1Vcpu, Tsc{28}, 2}, {kD1Vcpu, Tsc{35}, 1}, {kD1Vcpu, Tsc{42}, 2}};
  FakeThreads threads(switches);
  PlacingOptions options = WithoutTransitions();
  options.threads = &threads;
  Sample instant = Bracketed(1, Mode::kUser, 0x1234, 33, 34);
  instant.timed = true;
  const Lines lines = LinesOf(HvmGuest(), {instant, Bracketed(1, Mode::kXen, 0xf, 15, 50)}, nullptr,
                              trace::Vendor::kSvm, LoggedRip::kOfLastEntry, options);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1234 instant: guest, t2 1.00",
                                       "d1v0 xen 0xf bracketed: exit 72, t1 0.50 exit 61, t2 0.17 "
                                       "exit 60, t1 0.17 exit 60, t2 0.17"));
  // Observers get all time: guest [12, 20), [26, 30), [32, 40), [44, 60).
  EXPECT_THAT(lines.traced(),
              ElementsAre("d1v0 exit 60, t1 2", "d1v0 exit 60, t2 2", "d1v0 exit 61, t2 2",
                          "d1v0 exit 72, t1 6", "d1v0 guest, t1 15", "d1v0 guest, t2 21",
                          "d1v0 resume, t1 2"));
}

TEST(Placing, WithoutTraceTimedSamplesHaveThreads) {
  FakeThreads threads({{kD1Vcpu, Tsc{1}, 1}, {kD1Vcpu, Tsc{28}, 2}});
  Sample late = Bracketed(1, Mode::kUser, 2, 30, 31);
  Samples source({Bracketed(1, Mode::kUser, 1, 27, 28), Bracketed(1, Mode::kXen, 3, 2, 29), late});
  Lines lines;
  EXPECT_EQ(PlaceWithoutTrace(source, &threads, lines).Attributed(), 3U);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 user 0x1 untraced: untraced, t1 1.00",
                                       "d1v0 xen 0x3 untraced: untraced 1.00",
                                       "d1v0 user 0x2 untraced: untraced, t2 1.00"));
}

TEST(Placing, PlacesStoppedVcpuAtStop) {
  PlacingCounts counts;
  // The brackets hold pieces of other contexts too: before the stop, and after it.
  EXPECT_THAT(LinesOf(StoppedTwice(), {Stopped(11, 33), Stopped(35, 55)}, &counts).lines,
              ElementsAre("d1v0 user 0x1000 stopped: guest 1.00",
                          "d1v0 user 0x1000 stopped: exit 72 1.00"));
  EXPECT_EQ(counts.repaired, 0U);
}

TEST(Placing, UnstoppedVcpuIsUnplaced) {
  EXPECT_THAT(LinesOf(StoppedTwice(), {Stopped(28, 35), Stopped(62, 70)}).lines,
              ElementsAre("d1v0 not_running", "d1v0 outside_trace"));
}

TEST(Placing, PlacesStoppedPvVcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToOffline, 22, {kD1V0}),
                   Rec(kPvHypercallV2, 30, {hypercall::kSchedOp})});
  // It has not gone on when the trace ends.
  EXPECT_THAT(LinesOf(trace, {Stopped(18, 25)}).lines,
              ElementsAre("d1v0 user 0x1000 stopped: running 1.00"));
}

TEST(Placing, WithoutTraceAllSamplesCount) {
  Samples source({Bracketed(1, Mode::kXen, 1, 2, 8)});
  Lines lines;
  const PlacingCounts counts = PlaceWithoutTrace(source, nullptr, lines);
  EXPECT_THAT(lines.lines, ElementsAre("d1v0 xen 0x1 untraced: untraced 1.00"));
  EXPECT_EQ(counts.Attributed(), 1U);
}

}  // namespace
}  // namespace xenoscope::correlate
