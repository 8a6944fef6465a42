#include "report/html/page_exits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "findings/trace_tables.h"
#include "report/markup.h"

namespace xenoscope::report {
namespace {

using analysis::MetricGroup;
using analysis::MetricRow;
using nlohmann::ordered_json;

using SumsOfExits = std::map<std::pair<std::string, std::string>, ExitSums>;  // by domain, reason

constexpr std::string_view kOthers = "(others)";

void Add(const MetricRow& row, ExitSum& sum) {
  sum.count += findings::Figure(row, "count");
  sum.cycles += findings::Figure(row, "cycles");
}

// Adds the handler's event, or each of its numbers, as the column `subreason` names them.
void AddKind(const MetricRow& kind, ExitSums& sums) {
  const bool has_handler = !kind.name.starts_with('(');
  if (kind.parts.empty()) Add(kind, sums[has_handler ? kind.name : "-"]);
  for (const MetricRow& number : kind.parts) Add(number, sums[kind.name + " " + number.name]);
}

void AddGroup(const MetricGroup* group, const std::string& domain, std::string_view before,
              SumsOfExits& exits) {
  if (group == nullptr) return;
  for (const MetricRow& reason : group->rows) {
    ExitSums& sums = exits[{domain, std::string(before) + reason.name}];
    for (const MetricRow& kind : reason.parts) AddKind(kind, sums);
  }
}

}  // namespace

ordered_json ExitPartsJson(const ExitSums& sums) {
  std::vector<std::tuple<uint64_t, uint64_t, std::string>> sorted;
  for (const auto& [name, sum] : sums) sorted.emplace_back(sum.cycles, sum.count, name);
  std::ranges::sort(sorted, std::ranges::greater());
  ExitSum others;
  ordered_json parts = ordered_json::array();
  for (const auto& [cycles, count, name] : sorted) {
    if (parts.size() < kMostExitParts) {
      parts.push_back({Printable(name), count, cycles});
    } else {
      others.count += count;
      others.cycles += cycles;
    }
  }
  if (others.count > 0) parts.push_back({kOthers, others.count, others.cycles});
  return parts;
}

void AddExitParts(const analysis::Document& document, const ProfileReport& report,
                  ordered_json& exits) {
  SumsOfExits sums;
  for (const findings::DomainTables& domain : findings::DomainsOf(document)) {
    const std::string label = DomainLabel(report, domain.domain);
    for (const findings::VcpuTables& vcpu : domain.vcpus) {
      AddGroup(findings::FindGroup(*vcpu.section, "exits"), label, "", sums);
      AddGroup(findings::FindGroup(*vcpu.section, "nested_exits"), label, "nested ", sums);
    }
  }
  for (ordered_json& exit : exits) {
    const auto found =
        sums.find({exit["domain"].get<std::string>(), exit["name"].get<std::string>()});
    if (found != sums.end()) exit["parts"] = ExitPartsJson(found->second);
  }
}

}  // namespace xenoscope::report
