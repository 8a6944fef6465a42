// What makes NMIs when the performance counters cannot: on machines without them, such as QEMU's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace xenoscope::sampler {

class SamplingClock {
 public:
  virtual ~SamplingClock() = default;
  // NMIs on every pCPU from now on.
  virtual absl::Status Start() = 0;
  // No NMI after it returns.
  virtual void Stop() = 0;
  // How many NMIs that were due between the last Start and its Stop, on all pCPUs.
  virtual uint64_t Sent() const = 0;
};

}  // namespace xenoscope::sampler
