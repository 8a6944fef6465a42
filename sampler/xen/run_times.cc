#include "sampler/xen/run_times.h"

#include <cerrno>

#include "base/error.h"

namespace xenoscope::sampler {

absl::StatusOr<RunTimes> ReadRunTimes(VcpuCalls& calls,
                                      const std::vector<recording::DomainInfo>& domains) {
  RunTimes times;
  for (const recording::DomainInfo& domain : domains) {
    DomainState state;
    if (const int error = calls.Domain(domain.id, state); error == -ESRCH) continue;
    for (uint32_t number = 0; number < state.max_vcpus; ++number) {
      const VcpuRef vcpu{domain.id, VcpuId{number}};
      VcpuState of;
      const int error = calls.State(vcpu, of);
      if (error == -ESRCH) continue;  // it has gone, or has never been
      if (error < 0) return ErrnoError(-error, "Xen does not say how long {} ran", ToString(vcpu));
      times[vcpu] = of.ran_ns;
    }
  }
  return times;
}

}  // namespace xenoscope::sampler
