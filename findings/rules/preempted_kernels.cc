// vCPUs that were preempted in their guest's kernel while others of their domain ran: if they held
// a lock, the others span.
#include <fmt/format.h>

#include <charconv>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the running time of the domain from which on it stands out.
constexpr double kMinPreemptedPart = 0.05;

// Whether a row "0xffffffff81000000, VMEXIT_INTR" is of a 64-bit kernel's address: these are in the
// upper half.
bool IsKernelAddress(const std::string& name) {
  uint64_t address = 0;
  if (!name.starts_with("0x")) return false;
  const auto [stop, error] =
      std::from_chars(name.data() + 2, name.data() + name.size(), address, 16);
  return error == std::errc() && address >> 63 != 0;
}

// Returns the word of the row with this key; "" if it has none.
std::string Word(const analysis::MetricRow& row, std::string_view key) {
  for (const analysis::Metric& metric : row.metrics) {
    const auto* const word = std::get_if<std::string>(&metric.value);
    if (metric.key == key && word != nullptr) return *word;
  }
  return "";
}

}  // namespace

void FindPreemptedKernels(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    Cycles cycles = 0;
    uint64_t times = 0;
    const analysis::MetricRow* longest = nullptr;
    ForEachRow(domain, "hazards", [&](const analysis::MetricRow& row) {
      if (!IsKernelAddress(row.name)) return;
      cycles += Figure(row, "cycles");
      times += Figure(row, "count");
      if (longest == nullptr || Figure(row, "cycles") > Figure(*longest, "cycles")) longest = &row;
    });
    if (longest == nullptr || domain.times.running == 0) continue;
    const double part = static_cast<double>(cycles) / static_cast<double>(domain.times.running);
    if (part < kMinPreemptedPart) continue;
    const std::string symbol = Word(*longest, "symbol");
    Finding finding;
    finding.domain = domain.domain;
    finding.text =
        fmt::format("vCPUs of {} were preempted in their kernel {} times while others of it ran{}",
                    results.Label(domain.domain), CountText(times),
                    symbol.empty() ? "" : fmt::format(", longest in {}", symbol));
    finding.advice =
        "If they held a lock, the others waited in vain: fewer vCPUs than pCPUs, or paravirtual "
        "spin locks in the guest, avoid it.";
    finding.cycles = static_cast<double>(cycles);
    finding.figures = {{"count", analysis::MetricUnit::kCount, times},
                       {"of_running", analysis::MetricUnit::kFraction, part}};
    finding.command = SummaryCommand(domain.domain, "hazards");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
