// Xen's trace as a trace.dat of a host: vCPUs are threads that are scheduled on pCPUs
// (sched_switch), and guests are entered and left (kvm_entry, kvm_exit), the two events by which
// KernelShark finds when a guest ran.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "base/ids.h"
#include "report/export/trace_dat_kernel.h"
#include "trace/names.h"
#include "trace/trace_file.h"

namespace xenoscope::report {

// Returns the thread that the vCPU is in the file of the host.
[[nodiscard]] constexpr uint32_t TraceDatThread(VcpuRef vcpu) {
  constexpr uint32_t kVcpus = 10'000;  // more than a domain can have
  return vcpu.domain.value * kVcpus + vcpu.vcpu.value + 1;
}

// Writes the file. `guests` are the domains that have a file of their own, with their numbers of
// vCPUs; `name_of` returns a domain's name. A vCPU of a PV guest is in the guest while it runs.
// Errors: those of writing. O(records).
absl::Status WriteXenTraceDat(const std::string& path, const trace::TraceFile& xen,
                              trace::Vendor vendor,
                              const std::function<std::string(DomainId)>& name_of,
                              const std::map<DomainId, uint32_t>& guests,
                              const TraceDatOptions& options);

}  // namespace xenoscope::report
