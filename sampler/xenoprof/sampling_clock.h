// A source of NMIs for machines without performance counters, such as QEMU's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace xenoscope::sampler {

class SamplingClock {
 public:
  virtual ~SamplingClock() = default;
  // Starts NMIs on every pCPU.
  virtual absl::Status Start() = 0;
  // Stops them; there is no NMI after it returns.
  virtual void Stop() = 0;
  // Returns the number of NMIs, on all pCPUs, that were due between the last Start and its Stop.
  [[nodiscard]] virtual uint64_t Sent() const = 0;
};

}  // namespace xenoscope::sampler
