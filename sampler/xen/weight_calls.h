// The calls to Xen for the scheduler's weight of a domain, as an interface, so that tests can make
// a scheduler up.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace xenoscope::sampler {

// The schedulers that have weights; the numbers are Xen's XEN_SCHEDULER_*.
enum class WeightScheduler : uint32_t { kCredit = 5, kCredit2 = 6 };

class WeightCalls {
 public:
  virtual ~WeightCalls() = default;

  // Reads the weight of a domain. Returns 0 or -errno; -EINVAL: another scheduler runs it.
  virtual int Get(WeightScheduler scheduler, DomainId domain, uint16_t& weight) = 0;
  // Changes it, and leaves the domain's cap as it is. Returns as Get().
  virtual int Set(WeightScheduler scheduler, DomainId domain, uint16_t weight) = 0;
};

// Opens real Xen, by domctl, in the version of the interface that this Xen has. Errors: as those of
// OpenVcpuCalls().
absl::StatusOr<std::unique_ptr<WeightCalls>> OpenWeightCalls();

}  // namespace xenoscope::sampler
