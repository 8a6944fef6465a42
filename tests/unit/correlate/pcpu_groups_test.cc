// Which pCPUs a pass takes one after the other.
#include "correlate/pcpu_groups.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::correlate {
namespace {

using trace::kContinueRunning;
using trace::kIdle;
using trace::kLostRecords;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kSchedDomRem;
using trace::kVmentry;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vcpu;

using Records = std::vector<std::vector<uint32_t>>;

class NoObserver final : public TimelineObserver {};

// Notes the pCPUs whose records come, once for each run of records.
struct Taker {
  Timeline& timeline;
  std::string pcpus;
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) {
    const std::string pcpu = fmt::format("p{}", record.pcpu.value);
    if (!pcpus.ends_with(pcpu)) pcpus += (pcpus.empty() ? "" : " ") + pcpu;
    timeline.TakeCrossingOrder(record);
  }
  void TakeNonRecord(const trace::Item& item) const { timeline.TakeNonRecord(item); }
};

// Four pCPUs, each of which begins at the time 0 with `before`, and has from the time 1000 on the
// records of `window`. Returns the order in which a window from 1000 to 2000 gives the records.
std::string OrderOf(const std::map<uint32_t, Records>& before,
                    const std::map<uint32_t, Records>& window) {
  TraceBuilder trace;
  for (uint32_t pcpu = 0; pcpu < 4; ++pcpu) {
    Records records = {Rec(kVmentry, 1, {})};
    for (const auto* part : {&before, &window}) {
      if (part->contains(pcpu)) {
        records.insert(records.end(), part->at(pcpu).begin(), part->at(pcpu).end());
      }
    }
    // Behind the window, and enough for the fast path.
    records.insert(records.end(), 12, Rec(kVmentry, 5000, {}));
    trace.Window(pcpu, records);
  }
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  trace::OrderedStream stream = file->Stream();
  NoObserver observer;
  Timeline timeline(observer);
  Taker first{timeline, {}};
  stream.ForEach<false, trace::RecordOrder::kCrossing>(Tsc{999}, trace::kAllEvents, first);
  PcpuGroups groups(timeline);
  Taker taker{timeline, {}};
  groups.ForEach<false>(stream, Tsc{2000}, trace::kAllEvents, taker);
  return taker.pcpus;
}

// Two records of the vCPU, at the times 1000 + `at` and 10 later.
Records Runs(uint32_t vcpu, uint32_t at) {
  return {Rec(kRunnableToRunning, 1000 + at, {vcpu}), Rec(kContinueRunning, 1010 + at, {vcpu})};
}

TEST(PcpuGroups, ArePcpusThatShareVcpusOrDomains) {
  const std::map<uint32_t, Records> apart = {{0, Runs(Vcpu(1, 0), 0)},
                                             {1, Runs(Vcpu(2, 0), 5)},
                                             {2, Runs(Vcpu(3, 0), 2)},
                                             {3, Runs(Vcpu(kIdle, 3), 1)}};
  EXPECT_EQ(OrderOf({}, apart), "p0 p1 p2 p3");
  auto same_domain = apart;
  same_domain[2] = Runs(Vcpu(1, 1), 2);
  EXPECT_EQ(OrderOf({}, same_domain), "p0 p2 p0 p2 p1 p3");
  auto idle = apart;
  idle[2] = Runs(Vcpu(kIdle, 2), 2);
  EXPECT_EQ(OrderOf({}, idle), "p0 p1 p2 p3") << "idle vCPUs are of no domain";
}

TEST(PcpuGroups, FewPcpusAreTakenTogetherUnlessMostAreAlone) {
  std::map<uint32_t, Records> pairs = {{0, Runs(Vcpu(1, 0), 0)},
                                       {1, Runs(Vcpu(2, 0), 5)},
                                       {2, Runs(Vcpu(1, 1), 2)},
                                       {3, Runs(Vcpu(2, 1), 1)}};
  EXPECT_EQ(OrderOf({}, pairs), "p0 p3 p2 p1 p0 p3 p2 p1");
  pairs[3] = Runs(Vcpu(3, 0), 1);
  EXPECT_EQ(OrderOf({}, pairs), "p0 p2 p0 p2 p1 p3");
}

TEST(PcpuGroups, AVcpuAlsoBelongsToThePcpuWhereItWas) {
  const std::map<uint32_t, Records> window = {{0, Runs(Vcpu(1, 0), 0)}, {1, Runs(Vcpu(2, 0), 5)}};
  const std::map<uint32_t, Records> before = {
      {0, {Rec(kRunnableToRunning, 10, {Vcpu(2, 0)}), Rec(kRunningToBlocked, 20, {Vcpu(2, 0)})}}};
  EXPECT_EQ(OrderOf({}, window), "p0 p1");
  EXPECT_EQ(OrderOf(before, window), "p0 p1 p0 p1");
}

TEST(PcpuGroups, AllAreOneWhereMoreIsConcernedThanIsNamed) {
  std::map<uint32_t, Records> window = {{0, Runs(Vcpu(1, 0), 0)}, {1, Runs(Vcpu(2, 0), 5)}};
  for (const std::vector<uint32_t>& record :
       {Rec(kSchedDomRem, 1500, {7}), Rec(kLostRecords, 1500, {7, 1, 1490, 0}),
        Rec(0x0002f000 + 0xabc, 1500, {})}) {
    window[3] = {record};
    EXPECT_TRUE(OrderOf({}, window).starts_with("p0 p1 p0 p1")) << record[0];
  }
}

}  // namespace
}  // namespace xenoscope::correlate
