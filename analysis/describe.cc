#include "analysis/describe.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "base/parallel.h"

namespace xenoscope::analysis {

Document DescribeAll(const std::vector<std::unique_ptr<Analysis>>& analyses,
                     const std::set<VcpuRef>& met, const TraceMetadata& metadata,
                     DescribeOn threads) {
  Document document;
  for (const auto& analysis : analyses) analysis->DescribeTrace(metadata, document.trace);
  std::map<DomainId, std::set<VcpuRef>> domains;
  std::set<DomainId> named;
  for (const auto& analysis : analyses) analysis->AddDomains(named);
  for (const DomainId domain : named) domains[domain];
  for (const VcpuRef vcpu : met) domains[vcpu.domain].insert(vcpu);
  for (const auto& [id, vcpus] : domains) {
    DomainSection& domain = document.domains.emplace_back(DomainSection{id, {}, {}});
    for (const VcpuRef ref : vcpus) domain.vcpus.push_back({ref.vcpu, {}});
  }
  const auto describe = [&](size_t number) {
    DomainSection& domain = document.domains[number];
    for (const auto& analysis : analyses) {
      analysis->DescribeDomain(domain.domain, metadata, domain.section);
    }
    for (VcpuSection& vcpu : domain.vcpus) {
      for (const auto& analysis : analyses) {
        analysis->DescribeVcpu({domain.domain, vcpu.vcpu}, metadata, vcpu.section);
      }
    }
  };
  // One thread alone may use the resolver.
  const size_t together = threads == DescribeOn::kAllThreads && metadata.resolver == nullptr
                              ? 1
                              : document.domains.size();
  ForEachInParallel(document.domains.size(), std::max<size_t>(together, 1), describe);
  return document;
}

}  // namespace xenoscope::analysis
