#include "cli/stat_run_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace xenoscope::cli {

StatRunTimes::StatRunTimes() {
  auto directory = sampler::DomainDirectory::Open();
  auto calls = sampler::OpenVcpuCalls();
  if (!directory.ok() || !calls.ok()) return;
  directory_ = *std::move(directory);
  calls_ = *std::move(calls);
  if (auto idle = sampler::IdleTimes::Open(); idle.ok()) idle_times_.emplace(*std::move(idle));
}

std::vector<recording::DomainInfo> StatRunTimes::Domains() const {
  if (directory_ == nullptr) return {};
  return directory_->List().value_or(std::vector<recording::DomainInfo>());
}

StatRunTimes::Reading StatRunTimes::Read() {
  Reading reading;
  if (calls_ == nullptr) return reading;
  reading.vcpus = sampler::ReadRunTimes(*calls_, Domains()).value_or(sampler::RunTimes());
  if (idle_times_) reading.idle_pcpus = idle_times_->Read().value_or(std::vector<uint64_t>());
  reading.at = std::chrono::steady_clock::now();
  return reading;
}

std::vector<profile::CountedPart> StatRunTimes::OfVcpus(
    const std::vector<DomainId>& domains) const {
  std::vector<profile::CountedPart> parts;
  for (const auto& [vcpu, ns] : end_.vcpus) {
    const bool is_wanted =
        domains.empty() || std::ranges::find(domains, vcpu.domain) != domains.end();
    if (!is_wanted) continue;
    const auto before = begin_.vcpus.find(vcpu);  // none: it is new
    const uint64_t ran = ns - (before == begin_.vcpus.end() ? 0 : before->second);
    parts.push_back({.domain = vcpu.domain, .vcpu = vcpu.vcpu, .count = static_cast<double>(ran)});
  }
  return parts;
}

std::vector<profile::CountedPart> StatRunTimes::OfPcpus() const {
  std::vector<profile::CountedPart> parts;
  const auto length = static_cast<double>(std::chrono::nanoseconds(end_.at - begin_.at).count());
  for (size_t i = 0; i < std::min(begin_.idle_pcpus.size(), end_.idle_pcpus.size()); ++i) {
    if (begin_.idle_pcpus[i] == 0) continue;  // it is not online
    const auto idle = static_cast<double>(end_.idle_pcpus[i] - begin_.idle_pcpus[i]);
    profile::CountedPart& part = parts.emplace_back();
    part.pcpu = PcpuId{static_cast<uint32_t>(i)};
    part.count = std::max(0.0, length - idle);
  }
  return parts;
}

profile::EventTotals StatRunTimes::Totals(profile::TotalsBy by,
                                          const std::vector<DomainId>& domains) const {
  profile::EventTotals totals;
  const std::vector<profile::CountedPart> parts =
      by == profile::TotalsBy::kPcpu ? OfPcpus() : OfVcpus(domains);
  if (parts.empty()) return totals;
  totals.events.push_back({"run-time", true});
  totals.seconds = std::chrono::duration<double>(end_.at - begin_.at).count();
  AddCounted(parts, by, totals);
  return totals;
}

}  // namespace xenoscope::cli
