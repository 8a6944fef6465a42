#include "findings/trace_tables.h"

#include <fmt/format.h>

#include <utility>

namespace xenoscope::findings {
namespace {

// The part of the trace from which on waits are worth a look, however small the domain is.
constexpr double kMinWaitOfTrace = 0.01;

}  // namespace

using analysis::MetricRow;

double MeanLength(const MetricRow& row) {
  const uint64_t count = Figure(row, "count");
  if (count == 0) return 0;
  return static_cast<double>(Figure(row, "cycles")) / static_cast<double>(count);
}

StateTimes& StateTimes::operator+=(const StateTimes& more) {
  running += more.running;
  runnable += more.runnable;
  blocked += more.blocked;
  offline += more.offline;
  return *this;
}

std::optional<double> WaitingPart(const StateTimes& times, double least, Cycles traced) {
  const auto runnable = static_cast<double>(times.runnable);
  const double able = runnable + static_cast<double>(times.running);
  if (able == 0 || runnable < least * able ||
      runnable < kMinWaitOfTrace * static_cast<double>(traced)) {
    return std::nullopt;
  }
  return runnable / able;
}

std::vector<std::string> SummaryCommand(DomainId domain, std::string sections) {
  return {"summary", "--domain", fmt::format("{}", domain.value), "--sections",
          std::move(sections)};
}

std::vector<DomainTables> DomainsOf(const analysis::Document& document) {
  std::vector<DomainTables> domains;
  for (const analysis::DomainSection& domain : document.domains) {
    if (domain.domain == kIdleDomain) continue;
    DomainTables& tables = domains.emplace_back(DomainTables{domain.domain, {}, {}});
    for (const analysis::VcpuSection& vcpu : domain.vcpus) {
      VcpuTables& one =
          tables.vcpus.emplace_back(VcpuTables{{domain.domain, vcpu.vcpu}, {}, &vcpu.section});
      const MetricRow* const row = FindRow(document.trace, "vcpus", ToString(one.vcpu));
      if (row == nullptr) continue;
      one.times = {.running = Figure(*row, "running"),
                   .runnable = Figure(*row, "runnable"),
                   .blocked = Figure(*row, "blocked"),
                   .offline = Figure(*row, "offline")};
      tables.times += one.times;
    }
  }
  return domains;
}

}  // namespace xenoscope::findings
