// Tests that analyses of some groups count what analyses of all groups do.
#include "analysis/summary/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "tests/unit/analysis/random_trace.h"

namespace xenoscope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string_view> KeysOf(const std::vector<std::unique_ptr<Analysis>>& analyses) {
  std::vector<std::string_view> keys;
  for (const auto& analysis : analyses) {
    for (const GroupInfo& group : analysis->Groups()) keys.push_back(group.key);
  }
  return keys;
}

GroupFilter Only(std::string_view key) {
  return [key](const GroupInfo& group) { return group.key == key; };
}

TEST(Registry, MakesAnalysesOfWantedGroupsOnly) {
  EXPECT_THAT(AnalysesOf(Only("no such group")), IsEmpty());
  EXPECT_THAT(KeysOf(AnalysesOf(Only("domains"))), ElementsAre("domains"));
  EXPECT_THAT(KeysOf(AnalysesOf(Only("exits"))),
              ElementsAre("exits", "nested_exits", "exit_edges"));
  EXPECT_THAT(KeysOf(AnalysesOf(Only("runqueue_waits"))),
              ElementsAre("runqueue_waits", "scheduler"));
  EXPECT_EQ(KeysOf(AnalysesOf([](const GroupInfo& /*group*/) { return true; })),
            KeysOf(AllAnalyses()));
}

// Returns the groups of the section that have the key and rows.
std::vector<MetricGroup> GroupsWith(std::string_view key, const Section& section) {
  std::vector<MetricGroup> groups;
  for (const MetricGroup& group : section.groups) {
    if (group.key == key && !group.rows.empty()) groups.push_back(group);
  }
  return groups;
}

// Returns the groups of all sections that have the key and rows.
std::vector<MetricGroup> GroupsWith(std::string_view key, const Document& document) {
  std::vector<MetricGroup> all = GroupsWith(key, document.trace);
  const auto add = [&](const Section& section) {
    for (MetricGroup& group : GroupsWith(key, section)) all.push_back(std::move(group));
  };
  for (const DomainSection& domain : document.domains) {
    add(domain.section);
    for (const VcpuSection& vcpu : domain.vcpus) add(vcpu.section);
  }
  return all;
}

TEST(Registry, GroupsHaveTheSameFiguresAlone) {
  std::set<std::string_view> met;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto all = AnalyseTrace(*file, {}, AllAnalyses, 1);
    ASSERT_TRUE(all.ok()) << all.status();
    for (const GroupInfo& group : AllGroups()) {
      SCOPED_TRACE(group.key);
      const auto alone = AnalyseTrace(
          *file, {}, [&group] { return AnalysesOf(Only(group.key)); }, 1);
      ASSERT_TRUE(alone.ok()) << alone.status();
      const std::vector<MetricGroup> expected = GroupsWith(group.key, all->document);
      EXPECT_EQ(GroupsWith(group.key, alone->document), expected);
      if (!expected.empty()) met.insert(group.key);
    }
  }
  EXPECT_GE(met.size(), 20U) << "the traces must have many groups";
}

}  // namespace
}  // namespace xenoscope::analysis
