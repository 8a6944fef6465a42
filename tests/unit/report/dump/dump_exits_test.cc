#include "report/dump/dump_exits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kVmentry;
using trace::Rec;
using trace::TraceBuilder;

struct Dumped {
  std::string text;
  ExitDumpResult result;
};

// Returns the dump at 1 GHz, of an AMD host, with the time 1000 as zero.
Dumped ExitsOf(const TraceBuilder& trace, DumpOptions options = {}) {
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "made by hand");
  EXPECT_TRUE(file.ok()) << file.status();
  options.clock = {1'000'000'000, ClockSource::kGiven};
  options.dialect.vendor = trace::Vendor::kSvm;
  options.zero = Tsc{1000};
  Dumped dumped;
  const auto result = DumpExits(*file, options, [&dumped](std::string_view piece) {
    dumped.text += piece;
    return true;
  });
  EXPECT_TRUE(result.ok()) << result.status();
  dumped.result = *result;
  return dumped;
}

std::vector<uint32_t> Exit(uint64_t tsc, uint32_t reason, uint32_t rip) {
  return Rec(trace::kSvmExit64, tsc, {reason, rip, 0});
}

//   cycle  1000   1100         1150   1200  1300             1500
//   p0     d1v0   exit: CPUID  enter  exit  trace ends       -
TraceBuilder Sample() {
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kRunnableToRunning, 1000, {kD1V0}), Exit(1100, trace::kVmexitCpuid, 0x401914),
                Rec(trace::kHvmCpuid, {0x40000000, 0, 1, 2, 3, 4}), Rec(kVmentry, 1150, {}),
                Exit(1200, trace::kVmexitNpf, 0x1000), Rec(trace::kSchedBlock, 1300, {1, 0})});
  return trace;
}

TEST(DumpExits, WritesALineForEachExit) {
  const Dumped dumped = ExitsOf(Sample());
  EXPECT_EQ(dumped.text,
            "  0.000000100 p0 d1v0 VMEXIT_CPUID cpuid leaf 0x40000000 rip 0x401914 cycles 50\n"
            "  0.000000200 p0 d1v0 VMEXIT_NPF - rip 0x1000 cycles 100 unfinished\n");
  EXPECT_EQ(dumped.result.exits, 2U);
  EXPECT_EQ(dumped.result.unfinished, 1U);
  EXPECT_EQ(dumped.result.outside, 0U);
  EXPECT_EQ(dumped.result.last, Tsc{1300});
}

TEST(DumpExits, WritesJsonAndCsv) {
  DumpOptions options;
  options.to = Tsc{1200};
  options.format = DumpFormat::kJson;
  const std::string json = ExitsOf(Sample(), options).text;
  EXPECT_TRUE(json.starts_with(
      R"({"tsc":1100,"seconds":0.000000100,"pcpu":0,"domid":1,"vcpu":0,"offset":)"))
      << json;
  EXPECT_TRUE(json.ends_with(
      R"("nested":false,"reason":114,"reason_name":"VMEXIT_CPUID",)"
      R"("subreason":"cpuid leaf 0x40000000","rip":"0x401914","cycles":50,"finished":true})"
      "\n"))
      << json;
  options.format = DumpFormat::kCsv;
  const std::string csv = ExitsOf(Sample(), options).text;
  EXPECT_TRUE(csv.starts_with(
      "tsc,seconds,pcpu,domid,vcpu,offset,nested,reason,reason_name,subreason,rip,cycles,finished\n"
      "1100,0.000000100,0,1,0,"))
      << csv;
  EXPECT_TRUE(csv.ends_with(",0,114,VMEXIT_CPUID,\"cpuid leaf 0x40000000\",0x401914,50,1\n"))
      << csv;
}

TEST(DumpExits, SelectsByTimeAndVcpu) {
  const auto with = [](auto change) {
    DumpOptions options;
    change(options);
    return ExitsOf(Sample(), options).result.exits;
  };
  EXPECT_EQ(with([](DumpOptions& options) { options.from = Tsc{1101}; }), 1U);
  EXPECT_EQ(with([](DumpOptions& options) { options.to = Tsc{1100}; }), 0U);
  EXPECT_EQ(with([](DumpOptions& options) { options.to = Tsc{1101}; }), 1U);
  EXPECT_EQ(with([](DumpOptions& options) { options.domains = {DomainId{2}}; }), 0U);
  EXPECT_EQ(with([](DumpOptions& options) { options.vcpus = {VcpuId{0}}; }), 2U);
  EXPECT_EQ(with([](DumpOptions& options) { options.pcpus = {PcpuId{1}}; }), 0U);
}

TEST(DumpExits, ReadsOnUntilSelectedExitsHaveEnded) {
  // d1v0 has an exit over the time 1200, and d2v0 until the end.
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Exit(1100, trace::kVmexitCpuid, 0),
                   Rec(kVmentry, 1300, {}), Exit(1400, trace::kVmexitCpuid, 0)});
  trace.Window(1, {Rec(kRunnableToRunning, 1000, {trace::Vcpu(2, 0)}),
                   Exit(1150, trace::kVmexitCpuid, 0), Rec(trace::kSchedBlock, 1500, {2, 0})});
  DumpOptions options;
  options.to = Tsc{1200};
  const Dumped all = ExitsOf(trace, options);
  EXPECT_EQ(all.result.exits, 2U);
  EXPECT_EQ(all.result.unfinished, 1U);
  EXPECT_EQ(all.result.last, Tsc{1500});
  options.domains = {DomainId{1}};
  const Dumped first = ExitsOf(trace, options);
  EXPECT_EQ(first.text, "  0.000000100 p0 d1v0 VMEXIT_CPUID - rip 0x0 cycles 200\n");
  EXPECT_EQ(first.result.last, Tsc{1300});
}

TEST(DumpExits, CountsWhatHasNoLine) {
  TraceBuilder trace;
  trace.Window(0, {Exit(1000, trace::kVmexitCpuid, 0), Rec(kVmentry, 1050, {}),
                   Rec(kRunnableToRunning, 1100, {kD1V0}),
                   Rec(trace::kHvmCpuid, {0, 0, 1, 2, 3, 4}), Rec(kVmentry, 1150, {})});
  const Dumped dumped = ExitsOf(trace);
  EXPECT_EQ(dumped.text, "");
  EXPECT_EQ(dumped.result.without_vcpu, 2U);
  EXPECT_EQ(dumped.result.outside, 1U);
}

TEST(DumpExits, StopsWhenTheSinkIsClosed) {
  const TraceBuilder trace = Sample();
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "made by hand");
  const auto closed = DumpExits(*file, {}, [](std::string_view) { return false; });
  EXPECT_TRUE(closed.ok());
  const auto failed =
      DumpExits(*file, {}, [](std::string_view) { return absl::InternalError("disk full"); });
  EXPECT_EQ(failed.status().message(), "disk full");
}

}  // namespace
}  // namespace xenoscope::report
