// The time that pCPUs were idle, as Xen counts it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/xen/sysctl_handle.h"

namespace xenoscope::sampler {

class IdleTimes {
 public:
  // The pCPUs of a host whose times are read; those beyond it are left out.
  static constexpr uint32_t kMaxPcpus = 4096;

  // Opens real Xen. Errors: those of SysctlHandle::Open.
  static absl::StatusOr<IdleTimes> Open();

  // Returns by pCPU the ns that it was idle since it came online; 0: it never was online
  // (XEN_SYSCTL_getcpuinfo). Errors: Xen refuses.
  absl::StatusOr<std::vector<uint64_t>> Read();

 private:
  IdleTimes(std::unique_ptr<SysctlHandle> sysctl, const uint64_t* times)
      : sysctl_(std::move(sysctl)), times_(times) {}

  std::unique_ptr<SysctlHandle> sysctl_;
  const uint64_t* times_;  // memory of sysctl_: kMaxPcpus numbers
};

}  // namespace xenoscope::sampler
