#include "analysis/summary/registry.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace xenoscope::analysis {
namespace {

// Returns the analysis of the groups that are wanted; null if none is.
std::unique_ptr<Analysis> AnalysisOf(const AnalysisMakers& makers, const GroupFilter& wants) {
  std::unique_ptr<Analysis> whole = makers.whole();
  std::vector<GroupInfo> wanted = whole->Groups();
  std::erase_if(wanted, [&wants](const GroupInfo& group) { return !wants(group); });
  if (wanted.empty()) return nullptr;
  if (makers.part == nullptr) return whole;
  std::unique_ptr<Analysis> part = makers.part();
  const std::vector<GroupInfo> groups = part->Groups();
  const bool enough = std::ranges::all_of(wanted, [&groups](const GroupInfo& group) {
    return std::ranges::find(groups, group) != groups.end();
  });
  return enough ? std::move(part) : std::move(whole);
}

}  // namespace

std::vector<std::unique_ptr<Analysis>> AllAnalyses() {
  std::vector<std::unique_ptr<Analysis>> all;
  all.reserve(kAnalyses.size());
  for (const AnalysisMakers& makers : kAnalyses) all.push_back(makers.whole());
  return all;
}

std::vector<std::unique_ptr<Analysis>> AnalysesOf(const GroupFilter& wants) {
  std::vector<std::unique_ptr<Analysis>> analyses;
  for (const AnalysisMakers& makers : kAnalyses) {
    std::unique_ptr<Analysis> analysis = AnalysisOf(makers, wants);
    if (analysis != nullptr) analyses.push_back(std::move(analysis));
  }
  return analyses;
}

std::vector<GroupInfo> AllGroups() {
  std::vector<GroupInfo> groups;
  for (const std::unique_ptr<Analysis>& analysis : AllAnalyses()) {
    for (const GroupInfo& group : analysis->Groups()) groups.push_back(group);
  }
  return groups;
}

}  // namespace xenoscope::analysis
