#include "report/phases/phases_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/table/table_csv.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using guests::PhaseState;
using guests::PhaseTimes;

constexpr DomainId kShownDomain{1};

PhaseTimes TimesOfPhase(Cycles guest, Cycles xen) {
  PhaseTimes times;
  times.states[static_cast<size_t>(PhaseState::kGuest)] = guest;
  times.states[static_cast<size_t>(PhaseState::kXen)] = xen;
  if (xen > 0) times.exits = {{.reason = 0x72, .time = xen, .exits = 3}};
  return times;
}

// 1000 cycles are a second.
std::vector<guests::Phase> ThreePhases() {
  return {{.name = "build", .when = {Tsc{0}, Tsc{0}}, .times = {}},
          {.name = "entry", .when = {Tsc{0}, Tsc{1000}}, .times = TimesOfPhase(900, 100)},
          {.name = "core", .when = {Tsc{1000}, Tsc{4000}}, .times = TimesOfPhase(2500, 500)}};
}

PhaseOptions PhaseOptionsFor(bool text) {
  return {.clock = {1000, ClockSource::kGiven}, .vendor = trace::Vendor::kSvm, .text = text};
}

TEST(PhasesView, PhasesAddUpToTheWhole) {
  EXPECT_EQ(ToText(PhasesTable(ThreePhases(), "shutdown", PhaseOptionsFor(true)), {}),
            "phase      begins    takes       guest      in Xen  VM exits\n"
            "build     0.000 s  0.000 s     0.000 s     0.000 s         0\n"
            "entry     0.000 s  1.000 s  900.000 ms  100.000 ms         3\n"
            "core      1.000 s  3.000 s     2.500 s  500.000 ms         3\n"
            "\n"
            "shutdown  0.000 s  4.000 s     3.400 s  600.000 ms         6\n");
}

TEST(PhasesView, ExitsAreByReason) {
  EXPECT_EQ(ToCsv(PhaseExitsTable(ThreePhases(), PhaseOptionsFor(false))),
            "phase,exit,exits,time_s\r\n"
            "entry,VMEXIT_CPUID,3,0.1\r\n"
            "core,VMEXIT_CPUID,3,0.5\r\n");
}

TEST(PhasesView, FunctionsHaveIntervals) {
  const auto row = [](DomainId domain, const char* phase, const char* function, double samples) {
    correlate::ProfileRow made;
    made.domain = domain;
    made.thread = phase;
    made.mode = Mode::kKernel;
    made.function = function;
    made.samples = samples;
    made.share = samples / 100;
    made.interval = {made.share / 2, made.share * 2};
    made.cycles = samples * 100;  // of 10,000 in all
    return made;
  };
  ProfileReport profile;
  profile.result.rows = {
      row(kShownDomain, "core", "small", 1), row(kShownDomain, "core", "memset", 20),
      row(kShownDomain, "entry", "none", 0), row(DomainId{2}, "core", "other", 9)};
  EXPECT_EQ(
      ToCsv(PhaseFunctionsTable(ThreePhases(), profile, kShownDomain, PhaseOptionsFor(false))),
      "phase,mode,function,samples,time_s,time_low_s,time_high_s\r\n"
      "entry,kernel,none,0,0,0,0\r\n"
      "core,kernel,memset,20,2,1,4\r\n"
      "core,kernel,small,1,0.1,0.05,0.2\r\n");
  EXPECT_EQ(PhaseFunctionsTable(ThreePhases(), profile, kShownDomain, PhaseOptionsFor(true))
                .groups.front()
                .rows.size(),
            2)
      << "text leaves out what has next to no samples";
}

}  // namespace
}  // namespace xenoscope::report
