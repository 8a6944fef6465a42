#include "profile/kernel_shifts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/ids.h"
#include "recording/sample.h"
#include "symbolizer/kaslr_shift.h"

namespace xenoscope::profile {

namespace {

constexpr size_t kMost = 4096;  // different addresses of a domain

using Sampled = std::map<DomainId, absl::flat_hash_set<Address>>;

// Adds the addresses of samples in kernel mode; if not `of_all`, only those of domains that have
// some already.
void AddKernelAddresses(correlate::SampleSource& samples, bool of_all, Sampled& sampled) {
  while (const recording::Sample* sample = samples.Next()) {
    if (sample->mode != Mode::kKernel) continue;
    const DomainId domain = sample->vcpu.domain;
    const auto of_domain = of_all ? sampled.try_emplace(domain).first : sampled.find(domain);
    if (of_domain == sampled.end() || of_domain->second.size() >= kMost) continue;
    of_domain->second.insert(sample->address);
  }
}

}  // namespace

std::vector<std::string> FindKernelShifts(symbolizer::DomainSymbols& symbols,
                                          correlate::SampleSource& samples,
                                          correlate::SampleSource* further) {
  Sampled sampled;
  AddKernelAddresses(samples, /*of_all=*/true, sampled);
  const bool few = std::ranges::any_of(sampled, [](const auto& of_domain) {
    return of_domain.second.size() < symbolizer::kMaxKaslrAddresses;
  });
  if (few && further != nullptr) AddKernelAddresses(*further, /*of_all=*/false, sampled);
  std::vector<std::string> findings;
  for (const auto& [domain, addresses] : sampled) {
    const std::vector<Address> all(addresses.begin(), addresses.end());
    if (auto found = symbols.FindShift(domain, all)) findings.push_back(*std::move(found));
  }
  return findings;
}

}  // namespace xenoscope::profile
