#include "cli/stat_run_times.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace xenoscope::cli {

StatRunTimes::StatRunTimes() {
  auto directory = sampler::DomainDirectory::Open();
  auto calls = sampler::OpenVcpuCalls();
  if (!directory.ok() || !calls.ok()) return;
  directory_ = *std::move(directory);
  calls_ = *std::move(calls);
}

std::vector<recording::DomainInfo> StatRunTimes::Domains() const {
  if (directory_ == nullptr) return {};
  return directory_->List().value_or(std::vector<recording::DomainInfo>());
}

sampler::RunTimes StatRunTimes::Read() const {
  if (calls_ == nullptr) return {};
  return sampler::ReadRunTimes(*calls_, Domains()).value_or(sampler::RunTimes());
}

profile::EventTotals StatRunTimes::Totals(profile::TotalsBy by,
                                          const std::vector<DomainId>& domains) const {
  profile::EventTotals totals;
  std::vector<profile::CountedPart> parts;
  for (const auto& [vcpu, ns] : end_) {
    const bool is_wanted =
        domains.empty() || std::ranges::find(domains, vcpu.domain) != domains.end();
    if (!is_wanted) continue;
    const auto before = begin_.find(vcpu);  // none: it is new
    const uint64_t ran = ns - (before == begin_.end() ? 0 : before->second);
    parts.push_back({.domain = vcpu.domain, .vcpu = vcpu.vcpu, .count = static_cast<double>(ran)});
  }
  if (parts.empty()) return totals;
  totals.events.push_back({"run-time", true});
  AddCounted(parts, by, totals);
  return totals;
}

}  // namespace xenoscope::cli
