#include "profile/kernel_shifts.h"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "recording/sample.h"

namespace xenoscope::profile {

std::vector<std::string> FindKernelShifts(symbolizer::DomainSymbols& symbols,
                                          correlate::SampleSource& samples) {
  constexpr size_t kEnough = 4096;  // addresses of a domain
  std::map<DomainId, std::vector<Address>> sampled;
  while (const recording::Sample* sample = samples.Next()) {
    if (sample->mode != Mode::kKernel) continue;
    std::vector<Address>& addresses = sampled[sample->vcpu.domain];
    if (addresses.size() < kEnough) addresses.push_back(sample->address);
  }
  std::vector<std::string> findings;
  for (const auto& [domain, addresses] : sampled) {
    if (auto found = symbols.FindShift(domain, addresses)) findings.push_back(*std::move(found));
  }
  return findings;
}

}  // namespace xenoscope::profile
