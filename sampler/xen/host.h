// The host as its dom0 sees it: Xen, clocks, processors, domains. Through interfaces that stay the
// same from Xen to Xen (sysfs, xenstore, CPUID leaves, platform_op), so that one build serves all.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"

namespace xenoscope::sampler {

// The TSC now: in a PV dom0 the host's own, the one of the trace's records.
Tsc ReadTsc();

// The TSC as a domain reads it: at which rate, and whether it is the processor's own, at most with
// an offset. Nothing is known without Xen.
struct DomainTsc {
  uint64_t hz = 0;
  bool native = false;
};
DomainTsc ReadDomainTsc();

recording::XenInfo ReadXenInfo();

// Cycles of the TSC in a second, by Linux's clock; takes a tenth of a second.
uint64_t MeasureTscHz();

// Xen's boot options (XENVER_commandline); empty when they cannot be had.
std::string XenCommandLine();

// 0 where something is not known.
recording::HostInfo ReadHostInfo();

// The local APIC ids of all pCPUs that are online, by pCPU (XENPF_get_cpuinfo). Errors: no privcmd.
absl::StatusOr<std::vector<uint32_t>> OnlineApicIds();

// Whether dom0 is a PV domain, as xenoprof needs it.
bool Dom0IsPv();

// The domains of this host, by xenstore.
class DomainDirectory {
 public:
  // Errors (FailedPrecondition): xenstore does not answer.
  static absl::StatusOr<std::unique_ptr<DomainDirectory>> Open();
  virtual ~DomainDirectory() = default;

  // All domains there are, by id; role kNone.
  virtual absl::StatusOr<std::vector<recording::DomainInfo>> List() = 0;
  // Their ids only: cheap enough to ask every second.
  virtual std::set<DomainId> Ids() = 0;
};

// The domain among `domains` that a user means by a name or an id. Errors (NotFound) list those
// there are.
absl::StatusOr<DomainId> FindDomain(const std::vector<recording::DomainInfo>& domains,
                                    std::string_view name_or_id);

}  // namespace xenoscope::sampler
