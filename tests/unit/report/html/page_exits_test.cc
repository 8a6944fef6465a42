#include "report/html/page_exits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace xenoscope::report {
namespace {

using analysis::MetricRow;
using nlohmann::ordered_json;

MetricRow Row(std::string name, uint64_t count, uint64_t cycles) {
  MetricRow row{std::move(name), {}, {}};
  row.Add("count", analysis::MetricUnit::kCount, count);
  row.Add("cycles", analysis::MetricUnit::kCycles, cycles);
  return row;
}

// Adds a vCPU of d1 whose exits are these rows.
void AddVcpu(uint32_t vcpu, std::string key, std::vector<MetricRow> rows,
             analysis::Document& document) {
  if (document.domains.empty()) document.domains.push_back({DomainId{1}, {}, {}});
  analysis::VcpuSection section{VcpuId{vcpu}, {}};
  analysis::MetricGroup group;
  group.key = std::move(key);
  group.rows = std::move(rows);
  section.section.groups.push_back(std::move(group));
  document.domains.front().vcpus.push_back(std::move(section));
}

ProfileReport Web() {
  ProfileReport report;
  report.domain_name = [](DomainId) { return "web"; };
  return report;
}

MetricRow Io(uint64_t reads, uint64_t writes) {
  MetricRow io = Row("VMEXIT_IOIO", reads + writes, 10 * (reads + writes));
  MetricRow read = Row("io_read", reads, 10 * reads);
  read.parts.push_back(Row("0x84", reads, 10 * reads));
  MetricRow write = Row("io_write", writes, 10 * writes);
  write.parts.push_back(Row("0x84", writes, 10 * writes));
  io.parts = {std::move(read), std::move(write)};
  return io;
}

TEST(PageExits, AddsUpSubreasonsOfAllVcpus) {
  analysis::Document document;
  MetricRow nmi = Row("VMEXIT_NMI", 3, 90);
  nmi.parts.push_back(Row("nmi", 2, 80));
  nmi.parts.push_back(Row("(no handler)", 1, 10));
  AddVcpu(0, "exits", {Io(2, 5), std::move(nmi)}, document);
  AddVcpu(1, "exits", {Io(1, 1)}, document);
  AddVcpu(1, "nested_exits", {Io(1, 0)}, document);
  ordered_json exits = {{{"domain", "web"}, {"name", "VMEXIT_IOIO"}},
                        {{"domain", "web"}, {"name", "VMEXIT_NMI"}},
                        {{"domain", "web"}, {"name", "nested VMEXIT_IOIO"}},
                        {{"domain", "web"}, {"name", "exit 0x1ff"}},
                        {{"domain", "db"}, {"name", "VMEXIT_IOIO"}}};
  AddExitParts(document, Web(), exits);
  EXPECT_EQ(exits[0]["parts"],
            ordered_json::parse(R"([["io_write 0x84",6,60],["io_read 0x84",3,30]])"));
  EXPECT_EQ(exits[1]["parts"], ordered_json::parse(R"([["nmi",2,80],["-",1,10]])"));
  EXPECT_EQ(exits[2]["parts"][0], ordered_json::parse(R"(["io_read 0x84",1,10])"));
  EXPECT_FALSE(exits[3].contains("parts"));
  EXPECT_FALSE(exits[4].contains("parts"));
}

TEST(PageExits, SumsUpWhatIsBeyondTheLimit) {
  MetricRow msr = Row("VMEXIT_MSR", 0, 0);
  msr.parts.push_back(Row("msr_read", 0, 0));
  for (uint64_t i = 1; i <= kMostExitParts + 2; ++i) {
    msr.parts.front().parts.push_back(Row(fmt::format("{:#x}", i), 1, i));
  }
  analysis::Document document;
  AddVcpu(0, "exits", {std::move(msr)}, document);
  ordered_json exits = {{{"domain", "web"}, {"name", "VMEXIT_MSR"}}};
  AddExitParts(document, Web(), exits);
  const ordered_json& parts = exits[0]["parts"];
  ASSERT_EQ(parts.size(), kMostExitParts + 1);
  EXPECT_EQ(parts.back(), ordered_json::parse(R"json(["(others)",2,3])json"));
}

}  // namespace
}  // namespace xenoscope::report
