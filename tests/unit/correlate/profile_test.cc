#include "correlate/profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "correlate/subtotals.h"
#include "tests/unit/correlate/fake_threads.h"
#include "tests/unit/trace/exit_reasons.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using testing::UnorderedElementsAre;

constexpr VcpuRef kD1{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2{DomainId{2}, VcpuId{0}};
constexpr Context kGuest{ContextKind::kGuest};
constexpr Context kCpuid{ContextKind::kExit, false, trace::kVmexitCpuid};
constexpr Context kIoio{ContextKind::kExit, false, trace::kVmexitIoio};

// Each thousand of addresses is a function; those from 9000 on have none.
class Thousands : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address address) override {
    const auto id = static_cast<uint32_t>(address / 1000);
    while (functions_.size() <= id) {
      Function function;
      function.image = "image";
      function.name = fmt::format("f{}", functions_.size());
      if (functions_.size() >= 9) function.unresolved = "no symbols";
      functions_.push_back(function);
    }
    return {id};
  }
  FunctionId ResolveNested(DomainId domain, Mode mode, Address /*address*/) override {
    return Resolve(domain, mode, 8000);
  }
  const Function& Describe(FunctionId id) const override { return functions_[id.value]; }
  std::vector<Frame> Inlined(DomainId, Mode, Address) override { return {}; }

 private:
  std::vector<Function> functions_;
};

class ProfileTest : public testing::Test {
 protected:
  // A sample of an interval of its own.
  void Add(Profile& profile, VcpuRef vcpu, Address address, const std::vector<Place>& places,
           Mode mode = Mode::kXen, uint16_t event = 0) {
    Sample sample;
    sample.event = event;
    sample.vcpu = vcpu;
    sample.mode = mode;
    sample.address = address;
    profile.OnPlaced({&sample, vcpu, address, Placement::kBracketed, ++run_, places});
  }
  static ProfileResult Finish(Profile& profile) {
    auto result = profile.Finish();
    EXPECT_TRUE(result.ok());
    return *result;
  }
  static std::vector<std::string> Lines(const ProfileResult& result) {
    std::vector<std::string> lines;
    for (const ProfileRow& row : result.rows) {
      lines.push_back(fmt::format("d{} {} {:.2f} {:.3f} {:.0f}", row.domain.value, row.function,
                                  row.samples, row.share, row.cycles));
    }
    return lines;
  }
  Thousands resolver_;
  uint64_t run_ = 0;
};

TEST_F(ProfileTest, SharesAreOfTracedTime) {
  // Twice as many samples of d2 as its time deserves.
  Profile profile({{Dimension::kDomain, Dimension::kFunction}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD2, kGuest, {1000});
  for (int i = 0; i < 3; ++i) Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  for (int i = 0; i < 2; ++i) Add(profile, kD2, 1000, {{kGuest, {}, 1}});
  Add(profile, kD2, 2000, {{kGuest, {}, 1}});
  Add(profile, kD2, 2000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  EXPECT_THAT(Lines(result), UnorderedElementsAre("d1 f1 3.00 0.750 3000", "d2 f1 2.00 0.125 500",
                                                  "d2 f2 2.00 0.125 500"));
  EXPECT_EQ(result.cycles, 4000);
}

// What a guest's own guest runs has none of the guest's functions; each level has its own time.
TEST_F(ProfileTest, NestedGuestsHaveTimeAndFunctionsOfTheirOwn) {
  constexpr Context kNestedBit{ContextKind::kGuest, true};
  Profile profile({{Dimension::kFunction, Dimension::kExit}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD1, kNestedBit, {1000});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}}, Mode::kKernel);
  Add(profile, kD1, 1000, {{kNestedBit, {}, 1}}, Mode::kKernel);
  // It is not known which of them it was in.
  Add(profile, kD1, 2000, {{kGuest, {}, 0.5}, {kNestedBit, {}, 0.5}}, Mode::kKernel);
  EXPECT_THAT(Lines(Finish(profile)),
              UnorderedElementsAre("d0 f1 1.00 0.500 2000", "d0 f8 1.00 0.167 667",
                                   "d0 f2 0.50 0.250 1000", "d0 f2 0.50 0.083 333"));
}

// Rows and domains have the same samples also where no stratum says of which domain they are.
TEST_F(ProfileTest, DomainsHaveTheSwitchesToThemWithoutStrata) {
  constexpr Context kSwitch{ContextKind::kSwitch};
  Profile profile({.by = {Dimension::kDomain, Dimension::kFunction}, .stratified = false},
                  resolver_);
  for (int i = 0; i < 2; ++i) {
    Add(profile, kD1, 1000, {{kGuest, {}, 0.75}, {kSwitch, {}, 0.25, 0.25, kD2}});
  }
  Add(profile, kD2, 2000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  EXPECT_THAT(Lines(result), UnorderedElementsAre("d1 f1 1.50 0.500 2", "d2 f1 0.50 0.167 0",
                                                  "d2 f2 1.00 0.333 1"));
  std::map<uint16_t, double> samples;
  for (const ProfileRow& row : result.domains) samples[row.domain.value] = row.samples;
  EXPECT_DOUBLE_EQ(samples[1], 1.5);
  EXPECT_DOUBLE_EQ(samples[2], 1.5);
}

TEST_F(ProfileTest, DomainShareIsExact) {
  Profile profile({{Dimension::kDomain, Dimension::kFunction}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD2, kGuest, {1000});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  Add(profile, kD2, 1000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  for (const ProfileRow& row : result.domains) {
    EXPECT_EQ(row.interval.low, row.share);
    EXPECT_EQ(row.interval.high, row.share);
  }
  for (const ProfileRow& row : result.rows) EXPECT_LT(row.interval.low, row.interval.high);
}

// d2 ran 1000 cycles, in 200 of which Xen switched to it; 10 of its 40 other samples are Xen's. The
// samples of switches were logged for d1, the vCPU that stopped.
TEST_F(ProfileTest, SwitchesAreXensTimeOfTheVcpuThatStarts) {
  constexpr Context kRunning{ContextKind::kRunning};
  constexpr Context kSwitch{ContextKind::kSwitch};
  const auto cycles = [&](std::vector<Dimension> by, int in_switches) {
    Profile profile({std::move(by), true, 0}, resolver_);
    profile.OnTraced(kD1, kCpuid, {500});
    profile.OnTraced(kD2, kRunning, {800});
    profile.OnTraced(kD2, kSwitch, {200});
    for (int i = 0; i < 5; ++i) Add(profile, kD1, 1000, {{kCpuid, {}, 1}});
    for (int i = 0; i < 30; ++i) Add(profile, kD2, 2000, {{kRunning, {}, 1}}, Mode::kKernel);
    for (int i = 0; i < 10; ++i) Add(profile, kD2, 3000, {{kRunning, {}, 1}});
    for (int i = 0; i < in_switches; ++i) {
      Add(profile, kD1, 4000, {{kCpuid, {}, 0.75}, {kSwitch, {}, 0.25, 0.25, kD2}});
    }
    std::vector<std::string> lines;
    for (const ProfileRow& row : Finish(profile).rows) {
      lines.push_back(fmt::format("d{} {} {:.2f} {:.0f}", row.domain.value, ToString(row.mode),
                                  row.samples, row.cycles));
    }
    return lines;
  };
  EXPECT_THAT(cycles({Dimension::kDomain, Dimension::kMode}, 4),
              UnorderedElementsAre("d1 xen 8.00 500", "d2 kernel 30.00 600", "d2 xen 11.00 400"));
  // Without a sample in switches, they are as the rest of its time.
  EXPECT_THAT(cycles({Dimension::kDomain, Dimension::kMode}, 0),
              UnorderedElementsAre("d1 xen 5.00 500", "d2 kernel 30.00 750", "d2 xen 10.00 250"));
}

// Of d2's 1000 cycles, 300 are switches from d1, which has a sample there, and 100 from a domain
// that is not sampled: nothing shows whose code ran in these.
TEST_F(ProfileTest, SwitchesFromDomainsWithoutSamplesAreNotOfTheOthers) {
  const auto rows = [&](ContextKind rest) {
    Profile profile({{Dimension::kExit}, true, 0}, resolver_);
    profile.OnTraced(kD2, {rest}, {600});
    profile.OnTraced(kD2, {ContextKind::kSwitch}, {300});
    profile.OnTraced(kD2, {ContextKind::kUnsampledSwitch}, {100});
    Add(profile, kD1, 1000, {{{ContextKind::kSwitch}, {}, 1, 1, kD2}});
    Add(profile, kD2, 2000, {{{rest}, {}, 1}});
    const ProfileResult result = Finish(profile);
    std::vector<std::string> lines{fmt::format("unsampled {:.0f}", result.unsampled_cycles)};
    for (const ProfileRow& row : result.rows) {
      const bool is_switch = row.exit.kind == ContextKind::kSwitch;
      lines.push_back(fmt::format("{} {:.0f}", is_switch ? "switch" : "rest", row.cycles));
    }
    return lines;
  };
  EXPECT_THAT(rows(ContextKind::kRunning),
              UnorderedElementsAre("rest 700", "switch 300", "unsampled 0"));
  EXPECT_THAT(rows(ContextKind::kExit),
              UnorderedElementsAre("rest 600", "switch 300", "unsampled 100"));
}

// Before its first exit an HVM vCPU only runs, as a PV one does. That is no place for switches of
// the time after it.
TEST_F(ProfileTest, SwitchesOfHvmVcpusAreNotOfTheTimeBeforeTheirFirstExit) {
  constexpr Context kRunning{ContextKind::kRunning};
  Profile profile({{Dimension::kExit}, true, 0}, resolver_);
  profile.OnTraced(kD2, kRunning, {10});
  profile.OnTraced(kD2, kGuest, {600});
  profile.OnTraced(kD2, {ContextKind::kUnsampledSwitch}, {100});
  Add(profile, kD2, 1000, {{kRunning, {}, 1}}, Mode::kUser);
  Add(profile, kD2, 2000, {{kGuest, {}, 1}}, Mode::kUser);
  const ProfileResult result = Finish(profile);
  EXPECT_EQ(result.unsampled_cycles, 100);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.cycles, row.exit == kRunning ? 10 : 600);
  }
}

TEST_F(ProfileTest, DomainsKeepTheirTimeWithSwitches) {
  constexpr Context kSwitch{ContextKind::kSwitch};
  Profile profile({{Dimension::kFunction}, true, 0}, resolver_);
  profile.OnTraced(kD1, kCpuid, {500});
  profile.OnTraced(kD2, kGuest, {800});
  profile.OnTraced(kD2, kSwitch, {200});
  Add(profile, kD2, 1000, {{kGuest, {}, 1}}, Mode::kUser);
  Add(profile, kD1, 2000, {{kCpuid, {}, 0.5}, {kSwitch, {}, 0.5, 0.5, kD2}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.domains.size(), 2U);
  for (const ProfileRow& row : result.domains) {
    EXPECT_EQ(row.cycles, row.domain == kD1.domain ? 500 : 1000);
    EXPECT_EQ(row.samples, row.domain == kD1.domain ? 0.5 : 1.5);
    EXPECT_EQ(row.interval.low, row.interval.high);
  }
}

// The trace has 400 of 1000 cycles in Xen, 60 of 100 samples say that 600 are: each of the 20 stays
// in the guest has 10 cycles of Xen.
TEST_F(ProfileTest, TransitionsAreTakenFromTheGuest) {
  constexpr Context kTransition = TransitionOf(kGuest);
  Profile profile({{Dimension::kExit}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {600, 20});
  profile.OnTraced(kD1, kCpuid, {400});
  for (int i = 0; i < 40; ++i) {
    Add(profile, kD1, 1000, {{kGuest, {}, 1}}, Mode::kUser);
    Add(profile, kD1, 2000, {{kCpuid, {}, 1}});
    if (i < 20) Add(profile, kD1, 3000, {{kTransition, {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 3U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_NEAR(row.cycles, row.exit == kTransition ? 200 : 400, 1e-2);
    // The share of Xen in 100 samples, 0.6, has the variance 0.6 * 0.4 / 100. The trace measures
    // CPUID exits.
    const double variance = row.exit == kCpuid ? 0 : 0.0024;
    EXPECT_NEAR(row.variance, variance, 0.0004);
  }
  EXPECT_EQ(result.domains.at(0).variance, 0);
  EXPECT_NEAR(result.cycles, 1000, 1e-9);
}

// Instructions beside cycles: the shares of cycles are as without them, the ratio is of all that
// was counted.
TEST_F(ProfileTest, CountsEventsBesideItsOwn) {
  const EventRatio ipc{.numerator = 1, .denominator = 0, .scale = 2};
  Profile profile(
      {.by = {Dimension::kFunction}, .period = 10, .event_numbers = {0, 1}, .ratios = {ipc}},
      resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  for (int i = 0; i < 4; ++i) Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  for (int i = 0; i < 2; ++i) Add(profile, kD1, 2000, {{kGuest, {}, 1}});
  for (int i = 0; i < 3; ++i) Add(profile, kD1, 1000, {{kGuest, {}, 1}}, Mode::kXen, 1);
  Add(profile, kD1, 3000, {{kGuest, {}, 0.5}, {kCpuid, {}, 0.5}}, Mode::kXen, 1);
  const ProfileResult result = Finish(profile);
  EXPECT_THAT(Lines(result), UnorderedElementsAre("d0 f1 4.00 0.667 2000", "d0 f2 2.00 0.333 1000",
                                                  "d0 f3 0.00 0.000 0"));
  EXPECT_EQ(result.samples, 6);
  EXPECT_THAT(result.event_samples, testing::ElementsAre(6, 4));
  EXPECT_DOUBLE_EQ(*result.ratios.at(0).value, 2 * 4.0 / 6);
  for (const ProfileRow& row : result.rows) {
    const RatioEstimate& ratio = row.ratios.at(0);
    if (row.function == "f1") {
      EXPECT_DOUBLE_EQ(*ratio.value, 2 * 3.0 / 4);
    } else if (row.function == "f2") {
      EXPECT_EQ(*ratio.value, 0);
    } else {
      EXPECT_FALSE(ratio.value);
      EXPECT_GT(row.interval.high, 0.1);  // no sample among six
      EXPECT_THAT(row.event_samples, testing::ElementsAre(0, 1));
    }
  }
  ASSERT_EQ(result.domains.size(), 1U);
  EXPECT_THAT(result.domains[0].event_samples, testing::ElementsAre(6, 4));
}

// Guests' own agents sample no Xen: that says nothing of transitions.
TEST_F(ProfileTest, SamplesOfGuestsAloneMakeNoTransitions) {
  Profile profile({{Dimension::kExit}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {600, 20});
  profile.OnTraced(kD1, kCpuid, {400});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}}, Mode::kUser);
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].cycles, 600);
}

// An event of time that was counted in some modes only: the trace does not know their time.
TEST_F(ProfileTest, UnstratifiedTimeIsSamplesTimesPeriod) {
  Profile profile({.by = {Dimension::kDomain, Dimension::kExit}, .period = 10, .stratified = false},
                  resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD2, kGuest, {1000});
  for (int i = 0; i < 3; ++i) Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  Add(profile, kD2, 1000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  EXPECT_THAT(Lines(result), UnorderedElementsAre("d1  3.00 0.750 30", "d2  1.00 0.250 10"));
  EXPECT_EQ(result.cycles, 40);
  EXPECT_EQ(result.unsampled_cycles, 0);
  EXPECT_TRUE(result.checks.empty());
  for (const ProfileRow& row : result.domains) EXPECT_LT(row.interval.low, row.interval.high);
}

TEST_F(ProfileTest, SplitsSampleOverPlaces) {
  Profile profile({{Dimension::kExit}, true, 0}, resolver_);
  profile.OnTraced(kD1, kCpuid, {600});
  profile.OnTraced(kD1, kIoio, {400});
  Add(profile, kD1, 1000, {{kCpuid, {}, 0.6}, {kIoio, {}, 0.4}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_DOUBLE_EQ(row.samples, row.exit == kCpuid ? 0.6 : 0.4);
    EXPECT_DOUBLE_EQ(row.cycles, row.exit == kCpuid ? 600 : 400);
  }
}

// Each is a stratum, so that what the trace says of it is exact.
TEST_F(ProfileTest, SubreasonsAreStrata) {
  Context port60 = kIoio;
  port60.exit_kind = ExitKind::kPortRead;
  port60.number = 0x60;
  Context others = kIoio;
  others.exit_kind = ExitKind::kInterrupt;
  others.number = kNoVector;
  Profile profile({{Dimension::kSubreason}, true, 0}, resolver_);
  profile.OnTraced(kD1, port60, {600});
  profile.OnTraced(kD1, others, {400});
  Add(profile, kD1, 1000, {{port60, {}, 1}});
  Add(profile, kD1, 1000, {{port60, {}, 0.5}, {others, {}, 0.5}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    const bool is_port = row.exit.exit_kind == ExitKind::kPortRead;
    EXPECT_EQ(row.exit.number, is_port ? 0x60 : kNoVector);
    EXPECT_DOUBLE_EQ(row.cycles, is_port ? 600 : 400);
  }
}

TEST_F(ProfileTest, ResolvesEachLineOnce) {
  int asked = 0;
  ProfileOptions options{{Dimension::kLine}, true, 0};
  options.line_of = [&asked](const PlacedSample& placed) {
    ++asked;
    return fmt::format("a.c:{}", placed.address / 2);
  };
  Profile profile(options, resolver_);
  profile.OnTraced(kD1, kGuest, {1000});
  for (const Address address : {2, 3, 3, 4}) Add(profile, kD1, address, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  EXPECT_EQ(asked, 3);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.samples, row.line == "a.c:1" ? 3 : 1) << row.line;
  }
}

TEST_F(ProfileTest, SumsByPage) {
  Profile profile({{Dimension::kPage}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {1000});
  for (const Address address : {0x1fff, 0x2000, 0x2010, 0x2fff}) {
    Add(profile, kD1, address, {{kGuest, {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.samples, row.page == 0x2000 ? 3 : 1);
    EXPECT_TRUE(row.page == 0x1000 || row.page == 0x2000);
  }
}

TEST_F(ProfileTest, VcpusOfDifferentDomainsAreDifferent) {
  Profile profile({{Dimension::kVcpu}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD2, kGuest, {1000});
  for (const VcpuRef vcpu : {kD1, kD2, kD2}) Add(profile, vcpu, 1000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.vcpu.value, 0);
    EXPECT_DOUBLE_EQ(row.share, row.domain == kD1.domain ? 0.75 : 0.25);
  }
}

Context GuestOf(uint32_t thread) {
  Context context = kGuest;
  context.thread = thread;
  return context;
}

// Thread 1 has three quarters of the time and half of the samples.
TEST_F(ProfileTest, ThreadsHaveTheirTimeOfTheTrace) {
  const FakeThreads threads;
  for (const bool by_function : {false, true}) {
    ProfileOptions options{{Dimension::kThread}, true, 0};
    if (by_function) options.by.push_back(Dimension::kFunction);
    options.threads = &threads;
    Profile profile(options, resolver_);
    profile.OnTraced(kD1, GuestOf(1), {3000});
    profile.OnTraced(kD1, GuestOf(2), {1000});
    for (int i = 0; i < 8; ++i) {
      Add(profile, kD1, 1000, {{GuestOf(1), {}, 0.5}, {GuestOf(2), {}, 0.5}});
    }
    const ProfileResult result = Finish(profile);
    ASSERT_EQ(result.rows.size(), 2U);
    for (const ProfileRow& row : result.rows) {
      EXPECT_DOUBLE_EQ(row.share, row.thread == "t1" ? 0.75 : 0.25) << row.thread;
      EXPECT_DOUBLE_EQ(row.samples, 4);
      EXPECT_EQ(row.interval.low == row.interval.high, !by_function);
    }
  }
}

TEST_F(ProfileTest, ThreadsOfOneContainerAreOneRow) {
  const FakeThreads threads;
  ProfileOptions options{{Dimension::kContainer}, true, 0};
  options.threads = &threads;
  Profile profile(options, resolver_);
  for (const uint32_t thread : {1, 2, 3}) {
    profile.OnTraced(kD1, GuestOf(thread), {1000});
    Add(profile, kD1, 1000, {{GuestOf(thread), {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_DOUBLE_EQ(row.cycles, row.container == "c1" ? 2000 : 1000) << row.container;
  }
}

// Where no row is by thread, threads do not divide strata.
TEST_F(ProfileTest, ThreadsAreLeftOutOfOtherRows) {
  const FakeThreads threads;
  ProfileOptions options{{Dimension::kFunction}, true, 0};
  options.threads = &threads;
  options.parts = true;
  Profile profile(options, resolver_);
  for (const uint32_t thread : {1, 2}) {
    profile.OnTraced(kD1, GuestOf(thread), {1000});
    Add(profile, kD1, 1000, {{GuestOf(thread), {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].parts.size(), 1U);
}

// Samples that know their process keep it; others have that of the thread.
TEST_F(ProfileTest, ProcessesAreThoseOfThreadsWhereSamplesDoNotKnowThem) {
  const FakeThreads threads;
  ProfileOptions options{{Dimension::kProcess}, true, 0};
  options.threads = &threads;
  Profile profile(options, resolver_);
  profile.OnTraced(kD1, GuestOf(5), {1000});
  Sample sample;
  sample.vcpu = kD1;
  const Place place{GuestOf(5), {}, 1};
  for (const uint32_t space : {0U, 7U}) {
    sample.space = {space};
    profile.OnPlaced({&sample, kD1, 1000, Placement::kBracketed, ++run_, {&place, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.process_of_thread, row.process.value == 7 ? "" : "p5");
  }
}

// The thread 1 is of a process that works for d1; it has three quarters of the time and half of
// the samples of the two threads. Then there is time of which no thread is known.
TEST_F(ProfileTest, BehalfIsThatOfTheThreadsProcess) {
  const FakeThreads threads;
  ProfileOptions options{{Dimension::kBehalf}, true, 0};
  options.threads = &threads;
  options.space_of = [](DomainId domain, uint32_t pid, Tsc) {
    return AddressSpaceId{domain == kDom0 ? pid : 0};
  };
  options.behalf_of = [](AddressSpaceId space) {
    return space.value == 101 ? std::optional(kD1.domain) : std::nullopt;
  };
  Profile profile(options, resolver_);
  constexpr VcpuRef kDom0V0{kDom0, {}};
  profile.OnTraced(kDom0V0, GuestOf(1), {3000});
  profile.OnTraced(kDom0V0, GuestOf(2), {1000});
  profile.OnTraced(kDom0V0, GuestOf(0), {1000});
  for (int i = 0; i < 8; ++i) {
    Add(profile, kDom0V0, 1000, {{GuestOf(1), {}, 0.5}, {GuestOf(2), {}, 0.5}});
    Add(profile, kDom0V0, 1000, {{GuestOf(0), {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_DOUBLE_EQ(row.cycles, row.behalf == kD1.domain ? 3000 : 2000);
    EXPECT_DOUBLE_EQ(row.samples, row.behalf == kD1.domain ? 4 : 12);
  }
}

TEST_F(ProfileTest, SumsByBehalf) {
  ProfileOptions options{{Dimension::kBehalf}, true, 0};
  // Every sample here is of the space 0; asked in turn, as processes would be.
  int asked = 0;
  options.behalf_of = [&asked](AddressSpaceId) {
    return ++asked <= 3 ? std::optional<DomainId>(kDom0) : std::nullopt;
  };
  Profile profile(options, resolver_);
  profile.OnTraced(kD1, kGuest, {1000});
  for (int i = 0; i < 4; ++i) Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 2U);
  for (const ProfileRow& row : result.rows) {
    EXPECT_EQ(row.samples, row.behalf == kDom0 ? 3 : 1);
    EXPECT_DOUBLE_EQ(row.cycles, row.behalf == kDom0 ? 750 : 250);
  }
}

// Callers are looked up inside their calls; what was interrupted, in another mode, is where it was.
TEST_F(ProfileTest, MergesStacksByFunction) {
  // f1 called by the last instruction of f2, which interrupted the first of f3.
  const std::array<Address, 2> callers = {3000, 3000};
  const auto* const bytes = reinterpret_cast<const std::byte*>(callers.data());
  for (const bool by_address : {false, true}) {
    std::vector<Dimension> by = {Dimension::kStack};
    if (by_address) by.push_back(Dimension::kAddress);
    Profile profile({by, true, 0}, resolver_);
    for (const Address address : {Address{1000}, Address{1001}}) {
      Sample sample;
      sample.vcpu = kD1;
      sample.mode = Mode::kKernel;
      sample.address = address;
      sample.callers = {Bytes(bytes, sizeof callers), 0, 1};
      const Place place{kGuest, {}, 1};
      profile.OnPlaced({&sample, kD1, address, Placement::kInstant, ++run_, {&place, 1}});
    }
    const ProfileResult result = Finish(profile);
    ASSERT_EQ(result.rows.size(), by_address ? 2U : 1U);
    const Stack& stack = result.stacks.at(result.rows[0].stack);
    const Address inside = by_address ? 2999 : 0;
    const Address interrupted = by_address ? 3000 : 0;
    ASSERT_EQ(stack.size(), 3U);
    EXPECT_EQ(stack[0].function, FunctionId{1});
    EXPECT_EQ(stack[1], (StackFrame{FunctionId{2}, Mode::kKernel, inside}));
    EXPECT_EQ(stack[2], (StackFrame{FunctionId{3}, Mode::kUser, interrupted}));
  }
}

// A sample with the callers, in user mode.
void AddChain(Profile& profile, VcpuRef vcpu, Address address, const std::vector<Address>& callers,
              const std::vector<Place>& places, uint64_t run) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(callers.data());
  Sample sample;
  sample.vcpu = vcpu;
  sample.address = address;
  sample.mode = Mode::kUser;
  sample.callers = {Bytes(bytes, callers.size() * sizeof(Address)), 0, 0};
  profile.OnPlaced({&sample, vcpu, address, Placement::kBracketed, run, places});
}

// The total of a function is that of a row to which each sample belongs whose stack has the
// function: the same share, and the same interval.
TEST_F(ProfileTest, TotalsAreRowsOfTheSamplesWithTheFunction) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kFunction};
  Profile profile({.by = by, .totals = true}, resolver_);
  // f5 stands for all samples whose stack has f2, f6 for the others.
  Profile members({.by = by}, resolver_);
  std::mt19937 random(7);
  const auto pick = [&random](size_t below) { return random() % below; };
  for (Profile* each : {&profile, &members}) {
    each->OnTraced(kD1, kGuest, {1000});
    each->OnTraced(kD1, kCpuid, {400});
    each->OnTraced(kD2, kGuest, {3000});
  }
  double with_f2 = 0;
  for (uint64_t run = 1; run <= 300; ++run) {
    const VcpuRef vcpu = pick(3) == 0 ? kD2 : kD1;
    // Samples of a running interval are not independent.
    const bool in_f2 = pick(2) == 0;
    for (size_t i = pick(4); i < 4; ++i) {
      // Recursion, f2 itself, or f2 as a caller.
      std::vector<Address> callers = {1500, 2500, 3500, 2700, 4500};
      Address address = pick(2) == 0 ? 2000 : 1000;
      if (!in_f2) {
        callers = {1500, 4500};
        address = 3000;
      }
      std::vector<Place> places = {{kGuest, {}, 1}};
      if (vcpu == kD1 && pick(3) == 0) places = {{kGuest, {}, 0.25}, {kCpuid, {}, 0.75}};
      AddChain(profile, vcpu, address, callers, places, run);
      AddChain(members, vcpu, in_f2 ? 5000 : 6000, {}, places, run);
      with_f2 += in_f2 ? 1 : 0;
    }
  }
  const ProfileResult result = Finish(profile);
  const ProfileResult expected = Finish(members);
  ASSERT_TRUE(result.has_totals);
  double total_samples = 0;
  double self_samples = 0;
  for (const ProfileRow& row : result.rows) {
    ASSERT_TRUE(row.total);
    EXPECT_GE(row.total->samples + 1e-9, row.samples);
    self_samples += row.samples;
    if (row.function == "f4") {  // a caller of all, never sampled itself
      EXPECT_EQ(row.samples, 0);
      EXPECT_EQ(row.share, 0);
      EXPECT_GT(row.interval.high, 0);
    }
    if (row.function != "f2") continue;
    total_samples += row.total->samples;
    const auto as = std::ranges::find_if(expected.rows, [&row](const ProfileRow& other) {
      return other.domain == row.domain && other.function == "f5";
    });
    ASSERT_NE(as, expected.rows.end());
    EXPECT_NEAR(row.total->samples, as->samples, 1e-9);
    EXPECT_NEAR(row.total->share, as->share, 1e-12);
    EXPECT_NEAR(row.total->interval.low, as->interval.low, 1e-9);
    EXPECT_NEAR(row.total->interval.high, as->interval.high, 1e-9);
    EXPECT_NEAR(row.total->cycles, as->cycles, 1e-6);
  }
  EXPECT_NEAR(total_samples, with_f2, 1e-6);
  EXPECT_NEAR(self_samples, result.samples, 1e-6);
}

// Subtotals are the rows that a profile by their columns alone has.
TEST_F(ProfileTest, SubtotalsAreRowsByTheFirstColumns) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kMode, Dimension::kExit,
                                     Dimension::kFunction};
  Profile profile({.by = by, .subtotals = true}, resolver_);
  Profile by_mode({.by = {Dimension::kDomain, Dimension::kMode}}, resolver_);
  Profile by_exit({.by = {Dimension::kDomain, Dimension::kMode, Dimension::kExit}}, resolver_);
  std::mt19937 random(11);
  const auto pick = [&random](size_t below) { return random() % below; };
  for (Profile* each : {&profile, &by_mode, &by_exit}) {
    each->OnTraced(kD1, kGuest, {1000});
    each->OnTraced(kD1, kCpuid, {400});
    each->OnTraced(kD2, kGuest, {3000});
  }
  for (uint64_t run = 1; run <= 300; ++run) {
    const VcpuRef vcpu = pick(3) == 0 ? kD2 : kD1;
    // Samples of a running interval are not independent.
    const Mode mode = pick(2) == 0 ? Mode::kUser : Mode::kKernel;
    for (size_t i = pick(4); i < 4; ++i) {
      const Address address = 1000 * (1 + pick(4));
      std::vector<Place> places = {{kGuest, {}, 1}};
      if (vcpu == kD1 && pick(3) == 0) places = {{kGuest, {}, 0.25}, {kCpuid, {}, 0.75}};
      for (Profile* each : {&profile, &by_mode, &by_exit}) {
        Sample sample;
        sample.vcpu = vcpu;
        sample.mode = mode;
        sample.address = address;
        each->OnPlaced({&sample, vcpu, address, Placement::kBracketed, run, places});
      }
    }
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.subtotals.size(), 2);
  const std::array expected = {Finish(by_mode), Finish(by_exit)};
  for (size_t level = 0; level < 2; ++level) {
    const std::vector<ProfileRow>& rows = result.subtotals[level];
    ASSERT_EQ(rows.size(), expected[level].rows.size());
    // What the rows below say that they are part of adds up to the subtotal.
    const std::vector<ProfileRow>& below = level == 0 ? result.subtotals[1] : result.rows;
    std::vector<double> shares(rows.size());
    for (const ProfileRow& row : below) {
      EXPECT_EQ(row.domain, rows[row.part_of].domain);
      EXPECT_EQ(row.mode, rows[row.part_of].mode);
      shares[row.part_of] += row.share;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(shares[i], rows[i].share, 1e-12);
      const auto as = std::ranges::find_if(expected[level].rows, [&](const ProfileRow& other) {
        return other.domain == rows[i].domain && other.mode == rows[i].mode &&
               (level == 0 || other.exit == rows[i].exit);
      });
      ASSERT_NE(as, expected[level].rows.end());
      EXPECT_NEAR(rows[i].samples, as->samples, 1e-9);
      EXPECT_NEAR(rows[i].share, as->share, 1e-12);
      EXPECT_NEAR(rows[i].interval.low, as->interval.low, 1e-9);
      EXPECT_NEAR(rows[i].interval.high, as->interval.high, 1e-9);
      EXPECT_NEAR(rows[i].cycles, as->cycles, 1e-6);
    }
  }
}

void ExpectSameFigures(const ProfileRow& row, const ProfileRow& expected) {
  EXPECT_NEAR(row.samples, expected.samples, 1e-9);
  EXPECT_NEAR(row.share, expected.share, 1e-12);
  EXPECT_NEAR(row.interval.low, expected.interval.low, 1e-9);
  EXPECT_NEAR(row.interval.high, expected.interval.high, 1e-9);
  EXPECT_NEAR(row.cycles, expected.cycles, 1e-6);
}

// Subtotals of chosen functions are the rows that these functions have where they are one, by the
// same columns.
TEST_F(ProfileTest, SubtotalsOfChosenRowsAreRowsOfThese) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kMode, Dimension::kFunction};
  const auto is_chosen = [](const ProfileRow& row) {
    return row.function == "f1" || row.function == "f3";
  };
  Profile profile({.by = by,
                   .subtotals = true,
                   .choice = {.is_chosen = is_chosen, .by = {Dimension::kFunction}}},
                  resolver_);
  // f5 stands for the chosen functions, f6 for the others.
  Profile by_mode({.by = by}, resolver_);
  Profile by_domain({.by = {Dimension::kDomain, Dimension::kFunction}}, resolver_);
  std::mt19937 random(13);
  const auto pick = [&random](size_t below) { return random() % below; };
  for (Profile* each : {&profile, &by_mode, &by_domain}) {
    each->OnTraced(kD1, kGuest, {1000});
    each->OnTraced(kD1, kCpuid, {400});
    each->OnTraced(kD2, kGuest, {3000});
  }
  for (uint64_t run = 1; run <= 300; ++run) {
    const VcpuRef vcpu = pick(3) == 0 ? kD2 : kD1;
    const Mode mode = pick(2) == 0 ? Mode::kUser : Mode::kKernel;
    for (size_t i = pick(4); i < 4; ++i) {
      const uint64_t function = 1 + pick(4);
      std::vector<Place> places = {{kGuest, {}, 1}};
      if (vcpu == kD1 && pick(3) == 0) places = {{kGuest, {}, 0.25}, {kCpuid, {}, 0.75}};
      Sample sample;
      sample.vcpu = vcpu;
      sample.mode = mode;
      const auto add = [&](Profile& to, Address address) {
        sample.address = address;
        to.OnPlaced({&sample, vcpu, address, Placement::kBracketed, run, places});
      };
      add(profile, 1000 * function);
      for (Profile* each : {&by_mode, &by_domain}) {
        add(*each, function == 1 || function == 3 ? 5000 : 6000);
      }
    }
  }
  const ProfileResult result = Finish(profile);
  EXPECT_THAT(result.subtotals, testing::IsEmpty());
  ASSERT_EQ(result.chosen_subtotals.size(), 2U);
  const std::array expected = {Finish(by_domain), Finish(by_mode)};
  for (size_t level = 0; level < 2; ++level) {
    size_t found = 0;
    for (const ProfileRow& row : result.chosen_subtotals[level]) {
      const auto as = std::ranges::find_if(expected[level].rows, [&](const ProfileRow& other) {
        return other.function == "f5" && other.domain == row.domain &&
               (level == 0 || other.mode == row.mode);
      });
      ASSERT_NE(as, expected[level].rows.end());
      ExpectSameFigures(row, *as);
      ++found;
    }
    EXPECT_EQ(found, level == 0 ? 2U : 4U);
  }
  ProfileResult chosen = result;
  std::erase_if(chosen.rows, [&](const ProfileRow& row) { return !is_chosen(row); });
  EXPECT_TRUE(CheckLevels(chosen.chosen_subtotals, chosen.rows).ok());
  // Rows that are not chosen are part of none.
  EXPECT_FALSE(CheckLevels(result.chosen_subtotals, result.rows).ok());
}

// Where rows are chosen by what strata are of, their sums are as exact as rows of whole strata.
TEST_F(ProfileTest, ChosenExitsAreTraced) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kExit, Dimension::kFunction};
  Profile profile({.by = by,
                   .subtotals = true,
                   .choice = {.is_chosen = [](const ProfileRow& row) { return row.exit == kCpuid; },
                              .by = {Dimension::kExit}}},
                  resolver_);
  profile.OnTraced(kD1, kGuest, {3000});
  profile.OnTraced(kD1, kCpuid, {1000});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  Add(profile, kD1, 2000, {{kCpuid, {}, 1}});
  Add(profile, kD1, 3000, {{kGuest, {}, 0.5}, {kCpuid, {}, 0.5}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.chosen_subtotals.size(), 2U);
  for (const std::vector<ProfileRow>& rows : result.chosen_subtotals) {
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].samples, 1.5);
    EXPECT_EQ(rows[0].share, 0.25);
    EXPECT_EQ(rows[0].interval.low, rows[0].interval.high);
  }
}

// Totals of subtotals are those that rows by their columns alone have.
TEST_F(ProfileTest, SubtotalsHaveTotalsOfTheirOwn) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kImage, Dimension::kMode,
                                     Dimension::kFunction};
  Profile profile({.by = by, .totals = true, .subtotals = true}, resolver_);
  Profile by_image({.by = {Dimension::kDomain, Dimension::kImage}, .totals = true}, resolver_);
  Profile by_mode({.by = {Dimension::kDomain, Dimension::kImage, Dimension::kMode}, .totals = true},
                  resolver_);
  std::mt19937 random(17);
  for (Profile* each : {&profile, &by_image, &by_mode}) {
    each->OnTraced(kD1, kGuest, {1000});
    each->OnTraced(kD1, kCpuid, {400});
  }
  for (uint64_t run = 1; run <= 200; ++run) {
    for (size_t i = random() % 3; i < 3; ++i) {
      const Address address = 1000 * (1 + random() % 3);
      std::vector<Place> places = {{kGuest, {}, 1}};
      if (random() % 3 == 0) places = {{kGuest, {}, 0.25}, {kCpuid, {}, 0.75}};
      for (Profile* each : {&profile, &by_image, &by_mode}) {
        AddChain(*each, kD1, address, {1500, 2500, 1700}, places, run);
      }
    }
  }
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.subtotals.size(), 2U);
  const std::array expected = {Finish(by_image), Finish(by_mode)};
  for (size_t level = 0; level < 2; ++level) {
    ASSERT_EQ(result.subtotals[level].size(), 1U);
    ASSERT_EQ(expected[level].rows.size(), 1U);
    const ProfileRow& row = result.subtotals[level][0];
    const ProfileRow& as = expected[level].rows[0];
    ExpectSameFigures(row, as);
    ASSERT_TRUE(row.total && as.total);
    EXPECT_NEAR(row.total->samples, result.samples, 1e-9);
    EXPECT_NEAR(row.total->share, as.total->share, 1e-12);
    EXPECT_NEAR(row.total->interval.low, as.total->interval.low, 1e-9);
    EXPECT_NEAR(row.total->interval.high, as.total->interval.high, 1e-9);
  }
}

// On request a function that calls itself is one frame; one that it reaches by another stays.
TEST_F(ProfileTest, RecursionIsFolded) {
  Profile profile({.by = {Dimension::kStack}, .fold_recursion = true}, resolver_);
  AddChain(profile, kD1, 1000, {1500, 2500, 2600, 1500}, {{kGuest, {}, 1}}, 1);
  AddChain(profile, kD1, 1000, {2500, 1500, 1500, 1600}, {{kGuest, {}, 1}}, 2);
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_THAT(result.stacks.at(result.rows[0].stack),
              testing::ElementsAre(StackFrame{FunctionId{1}}, StackFrame{FunctionId{2}},
                                   StackFrame{FunctionId{1}}));
}

// Xen's stacks begin with the exit in which Xen ran; a sample that can be of several is part of
// several rows. A guest's stacks do not have exits.
TEST_F(ProfileTest, StacksOfXenBeginWithTheirExit) {
  Context cpuid{ContextKind::kExit, false, 0x72};
  cpuid.exit_kind = ExitKind::kCpuid;
  cpuid.number = 4;
  const Context hlt{ContextKind::kExit, false, 0x78};
  Profile profile({{Dimension::kMode, Dimension::kStack}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {1000});
  profile.OnTraced(kD1, cpuid, {300});
  profile.OnTraced(kD1, hlt, {100});
  Add(profile, kD1, 1000, {{cpuid, {}, 0.75}, {hlt, {}, 0.25}});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}}, Mode::kKernel);
  const ProfileResult result = Finish(profile);
  using Kind = StackFrame::Kind;
  ASSERT_EQ(result.rows.size(), 3U);
  const StackFrame in_xen{FunctionId{1}, Mode::kXen};
  for (const ProfileRow& row : result.rows) {
    const Stack& stack = result.stacks.at(row.stack);
    if (row.mode == Mode::kKernel) {
      EXPECT_THAT(stack, testing::ElementsAre(StackFrame{FunctionId{1}, Mode::kKernel}));
      EXPECT_NEAR(row.cycles, 1000, 1e-6);
    } else if (row.samples == 0.75) {
      ASSERT_EQ(stack.size(), 3U);
      EXPECT_EQ(stack[0], in_xen);
      EXPECT_EQ(stack[1].kind, Kind::kSubreason);
      EXPECT_EQ(result.exits.at(stack[1].number).number, 4U);
      EXPECT_EQ(stack[2].kind, Kind::kExit);
      EXPECT_EQ(result.exits.at(stack[2].number), WithoutSubreason(cpuid));
      EXPECT_NEAR(row.cycles, 300, 1e-6);
    } else {
      ASSERT_EQ(stack.size(), 2U);
      EXPECT_EQ(result.exits.at(stack[1].number), hlt);
      EXPECT_NEAR(row.cycles, 100, 1e-6);
    }
  }
}

// Of a PV guest the trace does not have why Xen ran. Callers in Xen say it, where Xen has them.
TEST_F(ProfileTest, StacksOfXenSayThatTheirEntryIsUnknown) {
  const Context running{ContextKind::kRunning};
  Profile profile({{Dimension::kMode, Dimension::kStack}, true, 0}, resolver_);
  profile.OnTraced(kD1, running, {100});
  Add(profile, kD1, 1000, {{running, {}, 1}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.rows.size(), 1U);
  const Stack& stack = result.stacks.at(result.rows[0].stack);
  ASSERT_EQ(stack.size(), 2U);
  EXPECT_EQ(stack[0], (StackFrame{FunctionId{1}, Mode::kXen}));
  EXPECT_EQ(stack[1].kind, StackFrame::Kind::kExit);
  EXPECT_EQ(result.exits.at(stack[1].number), running);

  Stacks stacks({});
  Sample sample;
  sample.mode = Mode::kXen;
  const std::vector<Address> callers = {2500, 3500};
  sample.callers = {std::as_bytes(std::span(callers)), 2, 0};
  const uint32_t chain = stacks.Add({&sample, kD1, 1000, Placement::kBracketed, 1, {}}, resolver_);
  EXPECT_EQ(stacks.WithExit(chain, running), chain);
  EXPECT_NE(stacks.WithExit(chain, kCpuid), chain);
}

// Code of an inlined function is told apart from the rest of the function, also where addresses are
// not.
TEST_F(ProfileTest, InlinedFunctionsAreFrames) {
  ProfileOptions options{{Dimension::kStack}, true, 0};
  int asked = 0;
  options.inlined_at = [&asked](const CodeLocation& place) -> std::vector<std::string> {
    ++asked;
    if (place.address >= 1500) return {};
    return {"inner", "outer"};
  };
  Profile profile(options, resolver_);
  profile.OnTraced(kD1, kGuest, {1000});
  for (const Address address : {1000, 1001, 1001, 1600}) {
    Add(profile, kD1, address, {{kGuest, {}, 1}});
  }
  const ProfileResult result = Finish(profile);
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(result.inlined, testing::ElementsAre("inner", "outer"));
  using Kind = StackFrame::Kind;
  const StackFrame function{FunctionId{1}, Mode::kXen};
  ASSERT_EQ(result.rows.size(), 2U);
  double samples = 0;
  for (const ProfileRow& row : result.rows) {
    samples += row.samples;
    if (row.samples == 1) {
      EXPECT_THAT(result.stacks.at(row.stack), testing::ElementsAre(function));
    } else {
      EXPECT_THAT(result.stacks.at(row.stack),
                  testing::ElementsAre(StackFrame{FunctionId{1}, Mode::kXen, 0, Kind::kInlined, 0},
                                       StackFrame{FunctionId{1}, Mode::kXen, 0, Kind::kInlined, 1},
                                       function));
    }
  }
  EXPECT_EQ(samples, 4);
}

// The trace measures what is in exits for one reason; only samples show what runs there.
TEST_F(ProfileTest, ExitsAreKnownExactlyAndTheirFunctionsAreNot) {
  for (const bool by_function : {false, true}) {
    std::vector<Dimension> by{Dimension::kDomain, Dimension::kExit};
    if (by_function) by.push_back(Dimension::kFunction);
    Profile profile({by, true, 0}, resolver_);
    profile.OnTraced(kD1, kCpuid, {600});
    profile.OnTraced(kD1, kIoio, {400});
    for (int i = 0; i < 20; ++i) Add(profile, kD1, 1000, {{kCpuid, {}, 0.6}, {kIoio, {}, 0.4}});
    for (const ProfileRow& row : Finish(profile).rows) {
      EXPECT_NEAR(row.share, row.exit == kCpuid ? 0.6 : 0.4, 1e-12);
      EXPECT_EQ(row.variance > 0, by_function);
    }
  }
}

TEST_F(ProfileTest, CountsUnsampledTimeAndUnresolvedAddresses) {
  Profile profile({{Dimension::kFunction}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {900});
  profile.OnTraced(kD1, kCpuid, {100});
  profile.OnTraced(kD2, kGuest, {5000});  // not profiled
  Add(profile, kD1, 9001, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  EXPECT_EQ(result.cycles, 900);
  EXPECT_EQ(result.unsampled_cycles, 100);
  ASSERT_EQ(result.unresolved.size(), 1U);
  EXPECT_EQ(result.unresolved[0].why, "no symbols");
  EXPECT_EQ(result.unresolved[0].samples, 1);
}

TEST_F(ProfileTest, WithoutTraceSamplesCountPeriods) {
  Profile profile({{Dimension::kDomain}, true, 250}, resolver_);
  const Place nowhere{{}, {}, 1};
  for (int i = 0; i < 3; ++i) Add(profile, kD1, 1000, {nowhere});
  Add(profile, kD2, 1000, {nowhere});
  const ProfileResult result = Finish(profile);
  EXPECT_EQ(result.cycles, 1000);
  EXPECT_TRUE(result.checks.empty());
  for (const ProfileRow& row : result.domains) {
    EXPECT_DOUBLE_EQ(row.share, row.domain == kD1.domain ? 0.75 : 0.25);
    EXPECT_LT(row.interval.low, row.interval.high);
  }
}

// 10 cycles a sample: of 2000 lost cycles the samples explain 1200.
TEST_F(ProfileTest, BoundsLostTime) {
  constexpr Context kLost{ContextKind::kLost};
  for (const auto& [told, cycles] :
       std::vector<std::pair<Cycles, double>>{{2000, 1200}, {1200, 1200}, {900, 900}}) {
    Profile profile({{Dimension::kDomain}, true, 0}, resolver_);
    profile.OnTraced(kD1, kGuest, {1000});
    profile.OnTraced({}, kLost, {told});
    for (int i = 0; i < 100; ++i) Add(profile, kD1, 1, {{kGuest, {}, 1}});
    for (int i = 0; i < 40; ++i) Add(profile, kD1, 1, {{kLost, {}, 1}});
    for (int i = 0; i < 80; ++i) Add(profile, kD2, 1, {{kLost, {}, 1}});
    const ProfileResult result = Finish(profile);
    EXPECT_DOUBLE_EQ(result.cycles, 1000 + cycles);
    for (const ProfileRow& row : result.domains) {
      const double expected = row.domain == kD1.domain ? 1000 + cycles / 3 : cycles * 2 / 3;
      EXPECT_NEAR(row.cycles, expected, 1e-6);
      EXPECT_LT(row.interval.low, row.share);
      EXPECT_GT(row.interval.high, row.share);
    }
  }
}

TEST_F(ProfileTest, NonTimeEventHasNoCycles) {
  Profile profile({{Dimension::kDomain}, false, 250}, resolver_);
  profile.OnTraced(kD1, kGuest, {100});
  profile.OnTraced(kD2, kGuest, {900});
  Add(profile, kD1, 1000, {{kGuest, {}, 1}});
  Add(profile, kD2, 1000, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  for (const ProfileRow& row : result.rows) {
    EXPECT_DOUBLE_EQ(row.share, 0.5);
    EXPECT_EQ(row.cycles, 0);
  }
}

TEST_F(ProfileTest, ComparesSampledWithTracedTime) {
  Profile profile({{Dimension::kDomain}, true, 0}, resolver_);
  profile.OnTraced(kD1, kGuest, {500});
  profile.OnTraced(kD2, kGuest, {500});
  for (int i = 0; i < 800; ++i) Add(profile, kD1, 1, {{kGuest, {}, 1}});
  for (int i = 0; i < 200; ++i) Add(profile, kD2, 1, {{kGuest, {}, 1}});
  const ProfileResult result = Finish(profile);
  ASSERT_EQ(result.checks.size(), 2U);
  EXPECT_DOUBLE_EQ(result.checks[0].sampled, 0.8);
  EXPECT_DOUBLE_EQ(result.checks[0].traced, 0.5);
  EXPECT_NEAR(result.checks[0].error, 0.0126, 0.0002);
  EXPECT_FALSE(result.checks[0].Agrees());
}

// One of hundreds of domains has a small part of all time: half of that is a great difference.
TEST(DomainCheckTest, IsRelativeToTheDomainsTime) {
  EXPECT_FALSE(
      (DomainCheck{.domain = {}, .sampled = 0.006, .traced = 0.004, .error = 0.0001}.Agrees()));
  EXPECT_TRUE(
      (DomainCheck{.domain = {}, .sampled = 0.006, .traced = 0.004, .error = 0.001}.Agrees()));
  EXPECT_TRUE((DomainCheck{.domain = {}, .sampled = 0.41, .traced = 0.4, .error = 0.001}.Agrees()));
}

}  // namespace
}  // namespace xenoscope::correlate
