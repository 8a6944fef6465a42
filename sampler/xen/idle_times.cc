#include "sampler/xen/idle_times.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "sampler/xen/domctl_handle.h"

namespace xenoscope::sampler {

absl::StatusOr<IdleTimes> IdleTimes::Open() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<SysctlHandle> sysctl,
                             SysctlHandle::Open("read how long pCPUs were idle"));
  const void* const times = sysctl->Allocate(kMaxPcpus * sizeof(uint64_t));
  if (times == nullptr) return ErrnoError(ENOMEM, "no memory for hypercalls");
  return IdleTimes(std::move(sysctl), static_cast<const uint64_t*>(times));
}

absl::StatusOr<std::vector<uint64_t>> IdleTimes::Read() {
  Sysctl& argument = sysctl_->Prepare(SysctlOp::kGetCpuInfo);
  argument.u.cpus.max_cpus = kMaxPcpus;
  argument.u.cpus.times = XenAddressOf(times_);
  if (const int error = sysctl_->Call(); error != 0) {
    return ErrnoError(-error, "Xen does not say how long pCPUs were idle");
  }
  return std::vector<uint64_t>(times_, times_ + std::min(argument.u.cpus.count, kMaxPcpus));
}

}  // namespace xenoscope::sampler
