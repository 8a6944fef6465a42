// PV domains that call Xen very often.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// Hypercalls in a second of running time from which on they stand out: one takes some 0.5 us at
// least, so that 20,000 cost 1 % of the time.
constexpr double kMinHypercallRate = 20'000;
constexpr size_t kMostNumbersNamed = 2;

struct Calls {
  std::string name;
  uint64_t count = 0;
};

// Returns the hypercalls of the domain's vCPUs, the most frequent first.
std::vector<Calls> CallsOf(const DomainTables& domain) {
  std::map<std::string, uint64_t> sums;
  ForEachRow(domain, "hypercalls",
             [&sums](const analysis::MetricRow& row) { sums[row.name] += Figure(row, "count"); });
  std::vector<Calls> calls;
  calls.reserve(sums.size());
  for (const auto& [name, count] : sums) calls.push_back({name, count});
  std::ranges::stable_sort(calls, std::ranges::greater(), &Calls::count);
  return calls;
}

// Returns what usually causes a hypercall of this name; "" for others.
std::string_view CauseOf(std::string_view name) {
  if (name == "iret") {
    return "A 64-bit PV guest ends interrupts and some system calls by iret. A PVH guest needs no "
           "hypercall for it.";
  }
  if (name == "mmu_update" || name == "update_va_mapping" || name == "mmuext_op") {
    return "A PV guest changes its page tables by hypercalls: processes that start, end or map "
           "much memory. A PVH guest needs none.";
  }
  if (name == "physdev_op") {
    return "A process with rights to I/O ports makes the kernel tell Xen of them at each switch.";
  }
  if (name == "grant_table_op") return "A back end copies or maps pages of other domains.";
  if (name == "event_channel_op" || name == "evtchn_op") {
    return "Front and back ends notify each other often. Larger requests or multi-queue help.";
  }
  return "";
}

}  // namespace

void FindHypercalls(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr || results.clock.hz == 0) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    if (domain.times.running == 0) continue;
    const std::vector<Calls> calls = CallsOf(domain);
    uint64_t all = 0;
    for (const Calls& each : calls) all += each.count;
    const double rate = static_cast<double>(all) / results.clock.Seconds(domain.times.running);
    if (rate < kMinHypercallRate) continue;
    Finding finding;
    finding.domain = domain.domain;
    finding.text =
        fmt::format("{} makes {} hypercalls in a second of its running time",
                    results.Label(domain.domain), CountText(static_cast<uint64_t>(rate)));
    for (size_t i = 0; i < std::min(calls.size(), kMostNumbersNamed); ++i) {
      finding.text += fmt::format("{}{} ({})", i == 0 ? ", most of all " : " and ", calls[i].name,
                                  CountText(calls[i].count));
    }
    finding.advice = CauseOf(calls.front().name);
    finding.figures = {{"count", analysis::MetricUnit::kCount, all},
                       {"per_second", analysis::MetricUnit::kFraction, rate}};
    finding.command = SummaryCommand(domain.domain, "hypercalls");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
