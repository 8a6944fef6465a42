// Traces that are refused, and the byte that messages name.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/series/series_pass.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/registry.h"
#include "correlate/timeline.h"
#include "tests/unit/analysis/summary_lines.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::analysis {
namespace {

using trace::Rec;

// Intervals of a cycle.
const SeriesRequest kRunstates{.series = {FindSeries("runstates")},
                               .length = [](const TraceMetadata&) { return 1; }};

std::string RefusalOf(const trace::TraceBuilder& bytes) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  const auto result = AnalyseTrace(*file, {}, AllAnalyses, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  const auto survey = ComputeSeriesTotals(*file, {}, kRunstates);
  EXPECT_EQ(survey.status(), result.status());
  return std::string(result.status().message());
}

TEST(Limits, RefuseMoreVcpusThanAHostHas) {
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i <= correlate::Timeline::kMaxVcpus; ++i) {
    records.push_back(Rec(kRunnableToRunning, 100 + i, {Vcpu(i / 4096, i % 4096)}));
  }
  trace::TraceBuilder trace;
  trace.Window(0, records);
  EXPECT_EQ(RefusalOf(trace),
            "test: more than 65536 vCPUs; the first one beyond is at byte 1048588");
}

TEST(Limits, RefuseTimesWhoseSumWouldOverflow) {
  constexpr uint64_t kFar = uint64_t{1} << 61;
  //   cycle  100   200      2^61 - 100
  //   p0     d1v0  blocked
  //   p1-4                  d2v1 to d2v4
  trace::TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}), Rec(kRunningToBlocked, 200, {Vcpu(1, 0)})});
  for (uint32_t pcpu = 1; pcpu < 5; ++pcpu) {
    trace.Window(pcpu, {Rec(kRunnableToRunning, kFar - 100, {Vcpu(2, pcpu)})});
  }
  EXPECT_EQ(RefusalOf(trace),
            "test: its times are 2305843009213693752 cycles apart, too far to add them up over 5 "
            "vCPUs; before byte 56 2305843009213693652 cycles pass: the clock of that pCPU is "
            "damaged, or not that of the others (--tsc-offset)");
}

TEST(Limits, RefuseMoreIntervalsThanCanBeWalked) {
  trace::TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}),
                   Rec(kRunningToBlocked, uint64_t{1} << 40, {Vcpu(1, 0)})});
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const auto survey = ComputeSeriesTotals(*file, {}, kRunstates);
  ASSERT_TRUE(survey.ok()) << survey.status();
  const auto status =
      ForEachSeriesRow(*file, *survey, [](const IntervalRow&) { return absl::OkStatus(); });
  EXPECT_EQ(status.message(),
            "test: 1099511627677 intervals of 3 lines and vCPUs are too many; choose a longer "
            "interval");
}

}  // namespace
}  // namespace xenoscope::analysis
