#include "analysis/describe.h"

#include <map>
#include <set>

namespace xenoscope::analysis {

Document DescribeAll(const std::vector<std::unique_ptr<Analysis>>& analyses,
                     const std::set<VcpuRef>& met, const TraceMetadata& metadata) {
  Document document;
  for (const auto& analysis : analyses) analysis->DescribeTrace(metadata, document.trace);
  std::map<DomainId, std::set<VcpuRef>> domains;
  std::set<DomainId> named;
  for (const auto& analysis : analyses) analysis->AddDomains(named);
  for (const DomainId domain : named) domains[domain];
  for (const VcpuRef vcpu : met) domains[vcpu.domain].insert(vcpu);
  document.domains.reserve(domains.size());
  for (const auto& [id, vcpus] : domains) {
    DomainSection& domain = document.domains.emplace_back(DomainSection{id, {}, {}});
    for (const auto& analysis : analyses) analysis->DescribeDomain(id, metadata, domain.section);
    domain.vcpus.reserve(vcpus.size());
    for (const VcpuRef ref : vcpus) {
      VcpuSection& vcpu = domain.vcpus.emplace_back(VcpuSection{ref.vcpu, {}});
      for (const auto& analysis : analyses) analysis->DescribeVcpu(ref, metadata, vcpu.section);
    }
  }
  return document;
}

}  // namespace xenoscope::analysis
