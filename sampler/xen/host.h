// The host as dom0 sees it: Xen, clocks, processors, domains. It uses interfaces that are stable
// between versions of Xen (sysfs, xenstore, CPUID leaves, platform_op), so that one build serves
// all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

// Returns the TSC now: in a PV dom0 the host's own, which the trace's records have.
Tsc ReadTsc();

// The TSC as a domain reads it: its rate, and whether it is the processor's own, at most with an
// offset. Nothing is known without Xen.
struct DomainTsc {
  uint64_t hz = 0;
  bool native = false;
};
DomainTsc ReadDomainTsc();

recording::XenInfo ReadXenInfo();

// Returns the time of day now.
recording::WallClock ReadWallClock();

// Returns the cycles of the TSC in a second, by Linux's clock; takes 0.1 s.
uint64_t MeasureTscHz();

// Returns Xen's boot options (XENVER_commandline); empty when they cannot be read.
std::string XenCommandLine();

// Returns what is known of the host; fields are 0 or empty where nothing is known.
recording::HostInfo ReadHostInfo();

// Returns the local APIC ids of all online pCPUs, by pCPU (XENPF_get_cpuinfo). Errors: no privcmd.
absl::StatusOr<std::vector<uint32_t>> OnlineApicIds();

// Returns whether dom0 is a PV domain, as xenoprof needs it.
bool Dom0IsPv();

// The domains of this host, by xenstore.
class DomainDirectory {
 public:
  // Opens xenstore. Errors (FailedPrecondition): it does not answer.
  static absl::StatusOr<std::unique_ptr<DomainDirectory>> Open();
  virtual ~DomainDirectory() = default;

  // Returns all domains, by id, with role kNone.
  virtual absl::StatusOr<std::vector<recording::DomainInfo>> List() = 0;
  // Returns their ids, which is cheap enough for once a second.
  virtual std::set<DomainId> Ids() = 0;
  // Returns the process that is the domain's device model, as the toolstack says; nothing if there
  // is none in this domain.
  virtual std::optional<uint32_t> DeviceModelOf(DomainId id) = 0;
  // Returns whether `xenoscope agent` in the domain waits for a recording.
  virtual bool OffersAgent(DomainId id) = 0;
};

// Returns the domain among `domains` that a user names by a name or an id. Errors (NotFound) list
// the domains.
absl::StatusOr<DomainId> FindDomain(const std::vector<recording::DomainInfo>& domains,
                                    std::string_view name_or_id);

}  // namespace xenoscope::sampler
