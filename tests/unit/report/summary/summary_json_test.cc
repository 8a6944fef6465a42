// Tests the keys that scripts rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "report/summary/summary_view.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using trace::Rec;

nlohmann::ordered_json SummaryOf(const trace::TraceBuilder& bytes) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  const auto result = analysis::AnalyseTrace(*file, {}, analysis::AllAnalyses, 1);
  EXPECT_TRUE(result.ok()) << result.status();
  return SummaryJson(*result, [](DomainId) { return std::string("web"); });
}

TEST(SummaryJson, KeepsItsKeys) {
  constexpr uint32_t kD2V0 = trace::Vcpu(2, 0);
  constexpr uint32_t kUpdateVaMapping = 14;
  trace::TraceBuilder bytes;
  bytes.Window(
      0, {Rec(trace::kRunnableToRunning, 100, {trace::kD1V0}),
          Rec(trace::kVmexit64, 200, {trace::kVmexitCpuid, 0, 0}), Rec(trace::kVmentry, 250, {}),
          Rec(trace::kRunningToBlocked, 300, {trace::kD1V0}),
          Rec(trace::kRunnableToRunning, 300, {kD2V0}),
          Rec(trace::kPvHypercallV2, 350, {kUpdateVaMapping}),
          Rec(trace::kRunningToRunnable, 400, {kD2V0})});
  const nlohmann::ordered_json summary = SummaryOf(bytes);
  for (const char* key : {"bytes", "records", "lost_records", "pcpus", "first_tsc", "last_tsc",
                          "cpu_hz", "cpu_hz_source", "vendor"}) {
    EXPECT_TRUE(summary["trace"].contains(key)) << key;
  }
  EXPECT_EQ(summary["trace"]["records"], 7);
  EXPECT_EQ(summary["trace"]["pcpus"], 1);
  ASSERT_EQ(summary["domains"].size(), 2U);
  for (const auto& domain : summary["domains"]) {
    EXPECT_TRUE(domain.contains("domid"));
    EXPECT_TRUE(domain.contains("runstates"));
    for (const auto& vcpu : domain["vcpus"]) {
      for (const char* key :
           {"vcpu", "runstates", "runnable", "exits", "hypercalls", "traps", "pv"}) {
        EXPECT_TRUE(vcpu.contains(key)) << key;
      }
    }
  }
  const auto& hvm = summary["domains"][0]["vcpus"][0];
  EXPECT_EQ(hvm["runstates"]["running"]["cycles"], 200);
  EXPECT_EQ(hvm["exits"]["VMEXIT_CPUID"]["count"], 1);
  EXPECT_EQ(hvm["exits"]["VMEXIT_CPUID"]["cycles"], 50);
  const auto& pv = summary["domains"][1]["vcpus"][0];
  EXPECT_EQ(pv["hypercalls"]["update_va_mapping"]["count"], 1);
}

TEST(SummaryJson, KeepsItsFieldsFromGroupsOfTheSameName) {
  analysis::AnalysisResult result;
  result.trace.pcpus = 2;
  result.document.trace.AddGroup({"pcpus", "pCPUs"}).rows.push_back({"p0", {}, {}});
  analysis::DomainSection& domain = result.document.domains.emplace_back();
  domain.domain = DomainId{7};
  domain.vcpus.emplace_back();
  for (const char* key : {"domid", "vcpus", "grants"}) domain.section.AddGroup({key, "Title"});
  domain.vcpus[0].section.AddGroup({"vcpu", "Title"});
  const nlohmann::ordered_json summary =
      SummaryJson(result, [](DomainId) { return std::string("web"); });
  EXPECT_EQ(summary["trace"]["pcpus"], 2);
  EXPECT_TRUE(summary["trace"]["pcpus_table"].contains("p0"));
  EXPECT_EQ(summary["domains"][0]["domid"], 7);
  EXPECT_EQ(summary["domains"][0]["vcpus"].size(), 1U);
  EXPECT_EQ(summary["domains"][0]["vcpus"][0]["vcpu"], 0);
  for (const char* key : {"domid_table", "vcpus_table", "grants"}) {
    EXPECT_TRUE(summary["domains"][0].contains(key)) << key;
  }
}

}  // namespace
}  // namespace xenoscope::report
