// The time that vCPUs have run, as Xen counts it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "recording/info.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

// The time in ns that each vCPU has run since it was created.
using RunTimes = std::map<VcpuRef, uint64_t>;

// Returns the run times of the domains' vCPUs (XEN_DOMCTL_getvcpuinfo); those of a domain that has
// gone are not in it. Errors: Xen refuses.
absl::StatusOr<RunTimes> ReadRunTimes(VcpuCalls& calls,
                                      const std::vector<recording::DomainInfo>& domains);

}  // namespace xenoscope::sampler
