// Each rule: what it finds in a small table, and that it is silent below its threshold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "findings/exit_causes.h"
#include "findings/find.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

using analysis::MetricRow;
using analysis::MetricUnit;
using correlate::Dimension;
using testing::HasSubstr;

constexpr uint64_t kHz = 1'000'000'000;  // a cycle is a nanosecond
constexpr Cycles kMs = 1'000'000;
constexpr Cycles kTraced = 1000 * kMs;

MetricRow Row(std::string name, uint64_t count, Cycles cycles) {
  MetricRow row{std::move(name), {}, {}};
  row.Add("count", MetricUnit::kCount, count).Add("cycles", MetricUnit::kCycles, cycles);
  return row;
}

// The document of a trace of a second.
class Trace {
 public:
  Trace() { document_.trace.AddGroup({"vcpus", ""}); }

  // Adds vCPU 0 of a domain, with these times.
  Trace& Vcpu(uint16_t domain, Cycles running, Cycles runnable = 0) {
    document_.trace.groups.front().rows.push_back(
        MetricRow{ToString(VcpuRef{DomainId{domain}, VcpuId{0}}), {}, {}}
            .Add("running", MetricUnit::kCycles, running)
            .Add("runnable", MetricUnit::kCycles, runnable));
    document_.domains.push_back({DomainId{domain}, {}, {{VcpuId{0}, {}}}});
    return *this;
  }
  // Adds a table of that vCPU.
  Trace& Table(std::string_view key, std::vector<MetricRow> rows) {
    document_.domains.back().vcpus.back().section.AddGroup({key, ""}).rows = std::move(rows);
    return *this;
  }
  Trace& TableOfTrace(std::string_view key, std::vector<MetricRow> rows) {
    document_.trace.AddGroup({key, ""}).rows = std::move(rows);
    return *this;
  }

  Trace& Recorded(const recording::RecordingInfo& info) {
    info_ = info;
    return *this;
  }

  std::vector<Finding> Found(FindFunction* rule) const {
    std::vector<Finding> found;
    rule({.trace = &document_,
          .traced = kTraced,
          .info = info_ ? &*info_ : nullptr,
          .clock = {kHz, ClockSource::kGiven}},
         found);
    return found;
  }

 private:
  analysis::Document document_;
  std::optional<recording::RecordingInfo> info_;
};

// A profile of functions, of one second in all.
class Samples {
 public:
  Samples() {
    set_.is_time = true;
    set_.period = 1e6;
    results_.result.cycles = static_cast<double>(kTraced);
  }
  std::vector<Finding> Found(FindFunction* rule) const {
    std::vector<Finding> found;
    rule({.sample_set = &set_,
          .profile = &results_,
          .by = {Dimension::kDomain, Dimension::kMode, Dimension::kFunction},
          .clock = {kHz, ClockSource::kGiven}},
         found);
    return found;
  }
  profile::SampleSet set_;
  profile::ProfileResults results_;
};

correlate::ProfileRow FunctionRow(std::string name, double share, correlate::Interval interval) {
  correlate::ProfileRow row;
  row.domain = DomainId{1};
  row.function = std::move(name);
  row.share = share;
  row.interval = interval;
  row.cycles = share * static_cast<double>(kTraced);
  return row;
}

TEST(HotFunctions, ComparesTheNearEndOfTheInterval) {
  Samples samples;
  samples.results_.result.rows = {FunctionRow("sha256_block", 0.3, {0.28, 0.32}),
                                  FunctionRow("perhaps", 0.07, {0.03, 0.12}),
                                  FunctionRow("[no symbols]", 0.3, {0.29, 0.31})};
  const auto found = samples.Found(FindHotFunctions);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "sha256_block of d1 takes 30.00% of the time (28.00% to 32.00%)");
  EXPECT_DOUBLE_EQ(found[0].cycles, 0.3 * kTraced);
  EXPECT_DOUBLE_EQ(found[0].interval->low, 0.28 * kTraced);
  EXPECT_EQ(found[0].command, (std::vector<std::string>{"annotate", "sha256_block"}));
}

TEST(HotFunctions, SpeaksOfTheTimeOfTheOnlyDomainWithSamples) {
  Samples samples;
  samples.results_.result.domains = {FunctionRow("", 1, {})};
  samples.results_.result.rows = {FunctionRow("sha256_block", 0.3, {0.28, 0.32})};
  EXPECT_EQ(samples.Found(FindHotFunctions).at(0).text,
            "sha256_block of d1 takes 30.00% of its time (28.00% to 32.00%)");
}

TEST(HotFunctions, PutsNoNameOfAGuestIntoACommandThatAShellWouldRun) {
  Samples samples;
  samples.results_.result.rows = {FunctionRow("$(reboot)", 0.3, {0.28, 0.32}),
                                  FunctionRow("--help", 0.3, {0.28, 0.32})};
  for (const Finding& finding : samples.Found(FindHotFunctions)) {
    EXPECT_EQ(finding.command, (std::vector<std::string>{"report", "--domain", "1"}));
  }
}

TEST(HotModes, ComparesTheNearEndOfTheIntervalWithTheDomainsTime) {
  const auto row_of = [](uint16_t domain, Mode mode, double share, correlate::Interval interval) {
    correlate::ProfileRow row = FunctionRow("", share, interval);
    row.domain = DomainId{domain};
    row.mode = mode;
    return row;
  };
  Samples samples;
  samples.results_.result.domains = {row_of(1, Mode::kUser, 0.5, {}),
                                     row_of(2, Mode::kUser, 0.04, {})};
  samples.results_.result.subtotals = {{
      row_of(1, Mode::kXen, 0.15, {0.14, 0.16}),
      row_of(1, Mode::kKernel, 0.05, {0.04, 0.06}),
      row_of(1, Mode::kUser, 0.3, {0.29, 0.31}),
      row_of(2, Mode::kXen, 0.04, {0.04, 0.04}),
  }};
  const auto found = samples.Found(FindHotModes);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "Xen takes 30.00% of the time of d1 (28.00% to 32.00%)");
  EXPECT_DOUBLE_EQ(found[0].cycles, 0.15 * kTraced);
  EXPECT_DOUBLE_EQ(found[0].interval->high, 0.16 * kTraced);

  std::vector<correlate::ProfileRow>& modes = samples.results_.result.subtotals.front();
  modes[0].interval.low = 0.12;
  EXPECT_TRUE(samples.Found(FindHotModes).empty()) << "perhaps less than a quarter";
  modes[1] = row_of(1, Mode::kKernel, 0.3, {0.26, 0.34});
  EXPECT_EQ(samples.Found(FindHotModes).at(0).text,
            "the kernel takes 60.00% of the time of d1 (52.00% to 68.00%)");
  samples.results_.result.subtotals.clear();
  EXPECT_TRUE(samples.Found(FindHotModes).empty())
      << "rows of functions have no interval of their mode";
}

TEST(HotDomain, NeedsMoreThanAllOthersTogether) {
  EXPECT_THAT(Trace().Vcpu(1, 600 * kMs).Vcpu(2, 300 * kMs).Found(FindHotDomain).at(0).text,
              HasSubstr("d1 runs longer than all other domains together: 66.67%"));
  EXPECT_TRUE(Trace().Vcpu(1, 40).Vcpu(2, 40).Vcpu(3, 40).Found(FindHotDomain).empty());
  EXPECT_TRUE(Trace().Vcpu(1, 600 * kMs).Found(FindHotDomain).empty()) << "there is no other";
}

TEST(Waits, NamesWhoRanMeanwhile) {
  Trace trace;
  trace.Vcpu(1, 200 * kMs, 600 * kMs)
      .Table("waited_for", {Row("d3v1", 0, 450 * kMs), Row("d2v0", 0, 60 * kMs)});
  const auto found = trace.Found(FindWaits);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text,
            "d1 waits for a pCPU in 75.00% of the time in which it could run, most of all while "
            "these run: d3 (75.00%), d2 (10.00%)");
  EXPECT_DOUBLE_EQ(found[0].cycles, 600.0 * kMs);
  EXPECT_TRUE(Trace().Vcpu(1, 800 * kMs, 200 * kMs).Found(FindWaits).empty());
  EXPECT_TRUE(Trace().Vcpu(1, kMs, 5 * kMs).Found(FindWaits).empty()) << "too little of the trace";
}

TEST(StarvedDom0, IsForDom0Alone) {
  EXPECT_EQ(Trace().Vcpu(0, 80 * kMs, 20 * kMs).Found(FindStarvedDom0).size(), 1U);
  EXPECT_TRUE(Trace().Vcpu(0, 95 * kMs, 5 * kMs).Found(FindStarvedDom0).empty());
  EXPECT_TRUE(Trace().Vcpu(1, 80 * kMs, 20 * kMs).Found(FindStarvedDom0).empty());
}

TEST(StarvedDom0, AdvisesMoreWeightUnlessItWasRaised) {
  const auto advice = [](std::optional<recording::BoostInfo> boost) {
    recording::RecordingInfo info;
    info.boost = boost;
    return Trace().Vcpu(0, 80 * kMs, 20 * kMs).Recorded(info).Found(FindStarvedDom0)[0].advice;
  };
  EXPECT_THAT(advice(std::nullopt), HasSubstr("record --boost does it"));
  EXPECT_THAT(advice(recording::BoostInfo{256, 2048}),
              HasSubstr("its weight, which --boost raised to 2048, is not enough"));
}

TEST(WakeLatency, ComparesWithATimeslice) {
  const auto found = [](Cycles mean) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs)
        .Table("runstates", {Row("running", 100, 500 * kMs)})
        .Table("runnable", {Row("wake", 50, 50 * mean)});
    return trace.Found(FindWakeLatency);
  };
  ASSERT_EQ(found(6 * kMs).size(), 1U);
  EXPECT_THAT(found(6 * kMs)[0].text, HasSubstr("waits 6.000 ms after a wake-up (mean of 50)"));
  EXPECT_TRUE(found(4 * kMs).empty());
}

TEST(Migrations, CountsMovesInRunningTime) {
  const auto found = [](uint64_t stays) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs).Table("affinity", {Row("all", stays, kTraced)});
    return trace.Found(FindMigrations);
  };
  ASSERT_EQ(found(151).size(), 1U);
  EXPECT_THAT(found(151)[0].text, HasSubstr("300 times in a second of its running time"));
  EXPECT_TRUE(found(91).empty());
}

TEST(PreemptedKernels, CountsKernelAddressesOnly) {
  const auto found = [](const std::string& address) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs)
        .Table("hazards", {Row(address + ", VMEXIT_INTR", 10, 50 * kMs)
                               .Add("symbol", std::string("_raw_spin_lock"))});
    return trace.Found(FindPreemptedKernels);
  };
  ASSERT_EQ(found("0xffffffff81000000").size(), 1U);
  EXPECT_THAT(found("0xffffffff81000000")[0].text, HasSubstr("longest in _raw_spin_lock"));
  EXPECT_TRUE(found("0x401000").empty());
}

TEST(ShortBlocks, NeedsManyThatAreShort) {
  const auto found = [](uint64_t count, Cycles mean) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs).Table("runstates", {Row("blocked", count, count * mean)});
    return trace.Found(FindShortBlocks);
  };
  ASSERT_EQ(found(1000, 10'000).size(), 1U);
  EXPECT_THAT(found(1000, 10'000)[0].text, HasSubstr("blocks 1,000 times a second"));
  EXPECT_TRUE(found(100, 10'000).empty());
  EXPECT_TRUE(found(1000, 100'000).empty());
}

Trace ExitTrace(const std::string& reason, const std::string& kind, const std::string& number,
                Cycles cycles) {
  MetricRow of_reason = Row(reason, 1000, cycles);
  MetricRow of_kind = Row(kind, 1000, cycles);
  of_kind.parts.push_back(Row(number, 1000, cycles));
  of_reason.parts.push_back(std::move(of_kind));
  Trace trace;
  trace.Vcpu(1, 500 * kMs).Table("exits", {std::move(of_reason)});
  return trace;
}

TEST(Exits, NamesTheLeafAndItsUsualCause) {
  const auto found = ExitTrace("VMEXIT_CPUID", "cpuid", "leaf 0x1", 100 * kMs).Found(FindExits);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text,
            "d1 leaves its guest 1,000 times for VMEXIT_CPUID (cpuid leaf 0x1): 20.00% of its "
            "active time");
  EXPECT_THAT(found[0].advice, HasSubstr("should keep the answer"));
  EXPECT_TRUE(ExitTrace("VMEXIT_CPUID", "cpuid", "leaf 0x1", 20 * kMs).Found(FindExits).empty());
  EXPECT_TRUE(ExitTrace("HLT", "hlt", "", 100 * kMs).Found(FindExits).empty());
}

TEST(Timers, CountsSettingsInRunningTime) {
  EXPECT_TRUE(ExitTrace("MSR_WRITE", "msr_write", "0x6e0 (TSC_DEADLINE)", kMs)
                  .Found(FindTimers)
                  .at(0)
                  .text.starts_with("d1 sets its timer 2,000 times in a second"));
  EXPECT_TRUE(
      ExitTrace("MSR_WRITE", "msr_write", "0x80b (X2APIC_EOI)", kMs).Found(FindTimers).empty());
}

TEST(LocalApic, AddsUpWhatEachRegisterDoesNotReach) {
  const auto found = [](std::vector<MetricRow> rows) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs).Table("exits", std::move(rows));
    return trace.Found(FindLocalApic);
  };
  const MetricRow tpr = Row("TPR_BELOW_THRESHOLD", 1000, 15 * kMs);
  const MetricRow access = Row("APIC_ACCESS", 500, 15 * kMs);
  const auto both = found({tpr, access});
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].text,
            "d1 reaches its local APIC by memory 1,500 times: 6.00% of its active time");
  EXPECT_TRUE(found({tpr}).empty());
  EXPECT_TRUE(found({Row("APIC_ACCESS", 500, 30 * kMs)}).empty())
      << "one kind is a finding of exits";
  EXPECT_TRUE(found({access, access}).empty()) << "also where several vCPUs have it";
}

TEST(UsualCause, DependsOnTheNumberFirst) {
  EXPECT_THAT(UsualCause({"VMEXIT_NPF", "npf", "populate_on_demand"}), HasSubstr("maxmem"));
  EXPECT_THAT(UsualCause({"EPT_VIOLATION", "npf", "mmio_dm, apic"}), HasSubstr("local APIC"));
  EXPECT_THAT(UsualCause({"IO_INSTRUCTION", "io_write", "0x3f8 (COM1)"}), HasSubstr("port"));
  EXPECT_THAT(UsualCause({"RDTSC", "rdtsc", ""}), HasSubstr("tsc_mode"));
  EXPECT_EQ(UsualCause({"VMEXIT_AVIC_NOACCEL", "(no handler)", ""}), "");
}

TEST(Hypercalls, AreCountedInRunningTime) {
  const auto found = [](uint64_t count) {
    Trace trace;
    trace.Vcpu(1, 500 * kMs).Table("hypercalls", {Row("iret", count, 0)});
    return trace.Found(FindHypercalls);
  };
  ASSERT_EQ(found(20'000).size(), 1U);
  EXPECT_THAT(found(20'000)[0].text, HasSubstr("40,000 hypercalls in a second"));
  EXPECT_EQ(found(20'000)[0].cycles, 0) << "the trace does not measure their time";
  EXPECT_TRUE(found(5'000).empty());
}

TEST(Losses, AreOfPcpusTime) {
  const auto found = [](Cycles lost) {
    MetricRow pcpu{"p0", {}, {}};
    pcpu.Add("lost_records", MetricUnit::kCount, 1234);
    pcpu.parts.push_back(Row("lost", 3, lost));
    return Trace().TableOfTrace("utilisation", {std::move(pcpu)}).Found(FindLosses);
  };
  ASSERT_EQ(found(20 * kMs).size(), 1U);
  EXPECT_EQ(found(20 * kMs)[0].text, "the trace lost 1,234 records, in 2.00% of the pCPUs' time");
  EXPECT_TRUE(found(5 * kMs).empty());
}

TEST(Losses, AreOfSamples) {
  Samples samples;
  samples.results_.counts.samples = 900;
  samples.set_.lost_in_buffers = 100;
  ASSERT_EQ(samples.Found(FindLosses).size(), 1U);
  EXPECT_THAT(samples.Found(FindLosses)[0].text, HasSubstr("10.00% of all"));
  samples.set_.lost_in_buffers = 1;
  EXPECT_TRUE(samples.Found(FindLosses).empty());
}

TEST(Bias, ComparesTheNearEndOfTheDifference) {
  Samples samples;
  samples.results_.result.checks = {{DomainId{1}, 0.40, 0.50, 0.01}};
  ASSERT_EQ(samples.Found(FindBias).size(), 1U);
  EXPECT_THAT(samples.Found(FindBias)[0].text, HasSubstr("40.00% of the samples"));
  samples.results_.result.checks = {{DomainId{1}, 0.40, 0.50, 0.05}};
  EXPECT_TRUE(samples.Found(FindBias).empty());
}

TEST(Resonance, NeedsSamplesInStep) {
  Samples samples;
  correlate::PlacingCheck check;
  check.domain = DomainId{1};
  check.exact = check.samples = 1000;
  check.ran = 500.0 * kMs;
  check.distance = 0.4;
  samples.results_.placing_checks = {check};
  const auto found = samples.Found(FindResonance);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].text, HasSubstr("the work of d1: 40.00% (35.71% to 44.29%) of them"));
  EXPECT_DOUBLE_EQ(found[0].cycles, 200.0 * kMs);
  check.distance = 0.09;  // chance in far more samples than one in some millions, but small
  samples.results_.placing_checks = {check};
  EXPECT_TRUE(samples.Found(FindResonance).empty());
  check.distance = 0.4;
  samples.results_.placing_checks = {check};
  samples.set_.stratified = false;  // samples of some modes are not uniform in time
  EXPECT_TRUE(samples.Found(FindResonance).empty());
}

TEST(Find, RanksByTimeAndLimitsEachRule) {
  analysis::Document document;
  analysis::MetricGroup& vcpus = document.trace.AddGroup({"vcpus", ""});
  for (uint16_t domain = 1; domain <= 5; ++domain) {
    vcpus.rows.push_back(MetricRow{ToString(VcpuRef{DomainId{domain}, VcpuId{0}}), {}, {}}
                             .Add("running", MetricUnit::kCycles, 100 * kMs)
                             .Add("runnable", MetricUnit::kCycles, domain * 100 * kMs));
    document.domains.push_back({DomainId{domain}, {}, {{VcpuId{0}, {}}}});
  }
  const auto found =
      Find({.trace = &document, .traced = kTraced, .clock = {kHz, ClockSource::kGiven}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].domain, DomainId{5});
  EXPECT_EQ(found[2].domain, DomainId{3});
  EXPECT_EQ(found[0].rule, "waits");
}

}  // namespace
}  // namespace xenoscope::findings
