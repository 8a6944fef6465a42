#include "report/threads/claims_view.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "recording/sample_format.h"

namespace xenoscope::report {
namespace {

using guests::ClaimedTimes;

constexpr double kSecondsOfANs = 1e-9;

// The figures of a row, in seconds.
struct ClaimFigures {
  double time = 0;
  double busy = 0;
  double ran = 0;
  double steal = 0;
  double waited = 0;
  double idle = 0;
  double blocked = 0;
  double offline = 0;
  double unknown = 0;
  // What the claims may be off for their steps and for the time that reading them took.
  double busy_error = 0;
  double idle_error = 0;
  double steal_error = 0;
};

struct ClaimColumn {
  const char* key;
  const char* title;
  double ClaimFigures::*figure;
  bool is_rare = false;  // text leaves it out where it is 0
};
constexpr ClaimColumn kClaimColumns[] = {
    {"time_s", "time", &ClaimFigures::time},
    {"claimed_busy_s", "says busy", &ClaimFigures::busy},
    {"claimed_busy_error_s", "\u00b1", &ClaimFigures::busy_error},
    {"ran_s", "ran", &ClaimFigures::ran},
    {"claimed_steal_s", "says steal", &ClaimFigures::steal},
    {"claimed_steal_error_s", "\u00b1", &ClaimFigures::steal_error},
    {"waited_s", "waited", &ClaimFigures::waited},
    {"claimed_idle_s", "says idle", &ClaimFigures::idle},
    {"claimed_idle_error_s", "\u00b1", &ClaimFigures::idle_error},
    {"blocked_s", "blocked", &ClaimFigures::blocked},
    {"offline_s", "offline", &ClaimFigures::offline, true},
    {"unknown_s", "not known", &ClaimFigures::unknown, true}};

void AddClaim(const ClaimedTimes& vcpu, Clock clock, ClaimFigures& to) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) * kSecondsOfANs; };
  to.time += clock.Seconds(vcpu.range.Length());
  to.busy += seconds(vcpu.busy);
  to.ran += clock.Seconds(vcpu.ran);
  to.steal += seconds(vcpu.steal);
  to.waited += clock.Seconds(vcpu.waited);
  to.idle += seconds(vcpu.idle);
  to.blocked += clock.Seconds(vcpu.blocked);
  to.offline += clock.Seconds(vcpu.offline);
  to.unknown += clock.Seconds(vcpu.unknown);
  const auto error = [&](uint64_t steps) {
    return seconds(steps * recording::kCpuTimesStep) + clock.Seconds(vcpu.readings);
  };
  to.busy_error += error(ClaimedTimes::kStepsOfBusy);
  to.idle_error += error(ClaimedTimes::kStepsOfIdle);
  to.steal_error += error(ClaimedTimes::kStepsOfSteal);
}

}  // namespace

Table ClaimsTable(const guests::Claims& claims, const std::function<std::string(DomainId)>& name_of,
                  Clock clock, const ThreadsOptions& options) {
  const bool of_domains = options.by == ThreadsBy::kDomain;
  std::map<VcpuRef, ClaimFigures> rows;
  ClaimFigures sum;
  for (const ClaimedTimes& vcpu : claims.vcpus) {
    AddClaim(vcpu, clock, rows[of_domains ? VcpuRef{vcpu.vcpu.domain, VcpuId{}} : vcpu.vcpu]);
    AddClaim(vcpu, clock, sum);
  }
  std::vector<ClaimColumn> shown;
  for (const ClaimColumn& column : kClaimColumns) {
    if (!options.text || !column.is_rare || sum.*column.figure > 0) shown.push_back(column);
  }
  Table table;
  table.columns = {{"domain", "domain"}};
  if (!of_domains) table.columns.push_back({"vcpu", "vcpu", ColumnUnit::kCount});
  for (const ClaimColumn& column : shown) {
    table.columns.push_back({column.key, column.title, ColumnUnit::kSeconds});
  }
  for (const auto& [vcpu, figures] : rows) {
    std::vector<Cell> cells{DomainLabel(vcpu.domain, name_of(vcpu.domain))};
    if (!of_domains) cells.emplace_back(uint64_t{vcpu.vcpu.value});
    for (const ClaimColumn& column : shown) cells.emplace_back(figures.*column.figure);
    table.AddRow(std::move(cells));
  }
  table.Limit(options.limit);
  return table;
}

}  // namespace xenoscope::report
