#include "profile/kernel_shifts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/ids.h"
#include "recording/sample.h"

namespace xenoscope::profile {

namespace {

constexpr size_t kMost = 4096;  // different addresses of a domain
constexpr size_t kFew = 256;    // as many as the search examines

using Sampled = std::map<DomainId, absl::flat_hash_set<Address>>;

void Add(Address address, absl::flat_hash_set<Address>& addresses) {
  if (addresses.size() < kMost) addresses.insert(address);
}

Sampled KernelAddresses(correlate::SampleSource& samples) {
  Sampled sampled;
  while (const recording::Sample* sample = samples.Next()) {
    if (sample->mode == Mode::kKernel) Add(sample->address, sampled[sample->vcpu.domain]);
  }
  return sampled;
}

// Adds addresses of the domains that have some.
void AddFurther(correlate::SampleSource& further, Sampled& sampled) {
  while (const recording::Sample* sample = further.Next()) {
    if (sample->mode != Mode::kKernel) continue;
    const auto known = sampled.find(sample->vcpu.domain);
    if (known != sampled.end()) Add(sample->address, known->second);
  }
}

}  // namespace

std::vector<std::string> FindKernelShifts(symbolizer::DomainSymbols& symbols,
                                          correlate::SampleSource& samples,
                                          correlate::SampleSource* further) {
  Sampled sampled = KernelAddresses(samples);
  const bool few = std::ranges::any_of(
      sampled, [](const auto& of_domain) { return of_domain.second.size() < kFew; });
  if (few && further != nullptr) AddFurther(*further, sampled);
  std::vector<std::string> findings;
  for (const auto& [domain, addresses] : sampled) {
    const std::vector<Address> all(addresses.begin(), addresses.end());
    if (auto found = symbols.FindShift(domain, all)) findings.push_back(*std::move(found));
  }
  return findings;
}

}  // namespace xenoscope::profile
