#include "report/profile/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace xenoscope::report {
namespace {

using analysis::MetricUnit;
using correlate::Dimension;

analysis::MetricRow Counted(std::string name, uint64_t count, Cycles cycles) {
  analysis::MetricRow row{std::move(name), {}, {}};
  row.Add("count", MetricUnit::kCount, count).Add("cycles", MetricUnit::kCycles, cycles);
  return row;
}

// Makes two seconds of a host of 1 GHz: Domain-0 runs half the time, web runs all the time with its
// two vCPUs.
analysis::AnalysisResult Trace() {
  analysis::AnalysisResult result;
  result.metadata.clock = {1'000'000'000, ClockSource::kRecorded};
  result.metadata.range = {Tsc{0}, Tsc{2'000'000'000}};
  result.trace.bytes = 5'000'000;
  analysis::DomainSection dom0{DomainId{0}, {}, {}};
  dom0.vcpus.push_back({VcpuId{0}, {}});
  analysis::Section& section = dom0.vcpus[0].section;
  section.AddGroup({"runstates", ""}).rows = {Counted("running", 5, 1'000'000'000),
                                              Counted("runnable", 5, 200'000'000),
                                              Counted("blocked", 5, 800'000'000)};
  section.AddGroup({"hypercalls", ""}).rows = {Counted("mmu_update", 3000, 0),
                                               Counted("sched_op", 1000, 0)};
  analysis::DomainSection web{DomainId{1}, {}, {}};
  for (const uint32_t vcpu : {0, 1}) {
    web.vcpus.push_back({VcpuId{vcpu}, {}});
    analysis::Section& exits = web.vcpus[vcpu].section;
    exits.AddGroup({"runstates", ""}).rows = {Counted("running", 1, 2'000'000'000)};
    exits.AddGroup({"exits", ""}).rows = {
        Counted("VMEXIT_HLT", 20, 0), Counted("VMEXIT_NPF", 400, 0), Counted("VMEXIT_MSR", 10, 0),
        Counted("VMEXIT_INTR", 90, 0)};
  }
  result.document.domains = {dom0, web};
  return result;
}

ProfileReport Samples() {
  ProfileReport report;
  report.by = {Dimension::kDomain, Dimension::kFunction};
  report.event = "cycles";
  report.counts.samples = 200;
  report.counts.placed[0] = 198;
  correlate::ProfileRow row;
  row.domain = DomainId{1};
  row.function = "hash";
  row.samples = 198;
  row.share = 0.75;
  row.interval = {0.7, 0.8};
  row.cycles = 3e9;
  report.result.rows = {row};
  report.domain_name = [](DomainId domain) { return domain.value == 1 ? "web" : ""; };
  return report;
}

std::string Show(const analysis::AnalysisResult* trace, const ProfileReport* profile,
                 const TopLayout& layout) {
  TopFrame frame;
  frame.recording = "web.xeno";
  frame.seconds = 2;
  const auto name = [](DomainId domain) { return std::string(domain.value == 1 ? "web" : ""); };
  frame.trace = trace;
  if (trace != nullptr) frame.domains = TopDomains(*trace, name);
  frame.profile = profile;
  frame.lost_samples = 7;
  return TopText(frame, layout);
}

TEST(TopText, SortsDomainsAndFunctions) {
  const analysis::AnalysisResult trace = Trace();
  const ProfileReport profile = Samples();
  EXPECT_EQ(
      Show(&trace, &profile, {}),
      "web.xeno: last 2.0 s   100 samples/s of cycles, 7 lost   trace 2.5 MB/s, 0 records "
      "lost\n"
      "\n"
      "domain  vcpus      cpu  runnable    idle  hypercalls/s  exits/s  top exits/s\n"
      "d1 web      2  200.00%     0.00%   0.00%             0      520  NPF 400, INTR 90, HLT "
      "20\n"
      "d0          1   50.00%    10.00%  40.00%         2,000        0\n"
      "\n"
      "samples   share     low    high  cycles  domain  function\n"
      "    198  75.00%  70.00%  80.00%  3.00 G  web     hash\n"
      "198 of 200 samples attributed\n");
}

TEST(TopText, SaysThatThereIsNoXen) {
  const ProfileReport profile = Samples();
  TopFrame frame;
  frame.profile = &profile;
  EXPECT_EQ(TopText(frame, {}).find("no Xen"), std::string::npos);
  frame.has_xen = false;
  EXPECT_NE(TopText(frame, {}).find("\nno Xen on this host: what is shown is this Linux"),
            std::string::npos);
}

TEST(TopText, FitsSmallScreen) {
  analysis::AnalysisResult trace = Trace();
  for (uint16_t id = 2; id < 40; ++id) {
    trace.document.domains.push_back(trace.document.domains.front());
    trace.document.domains.back().domain = DomainId{id};
  }
  const ProfileReport profile = Samples();
  TopLayout layout;
  layout.rows = 15;
  layout.style.width = 60;
  const std::string text = Show(&trace, &profile, layout);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15);
  EXPECT_THAT(text, testing::HasSubstr("hash"));
  EXPECT_THAT(text, testing::HasSubstr("(36 more)"));
}

TEST(TopText, WorksWithoutTraceOrSamples) {
  const analysis::AnalysisResult trace = Trace();
  ProfileReport none;
  none.by = {Dimension::kFunction};
  none.event = "cycles";
  EXPECT_EQ(Show(nullptr, &none, {}),
            "web.xeno: last 2.0 s   0 samples/s of cycles, 7 lost\n"
            "\n"
            "no samples in this interval\n");
  EXPECT_THAT(Show(&trace, nullptr, {}), testing::Not(testing::HasSubstr("samples")));
}

}  // namespace
}  // namespace xenoscope::report
