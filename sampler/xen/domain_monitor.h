// A monitor of domains and vCPUs during a recording: it polls them, and each difference from the
// poll before is a change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {

class DomainMonitor {
 public:
  // Limit of changes of one domain, beside those of its coming and going. A guest may change its
  // vCPUs and suspend itself as often as it likes.
  static constexpr uint32_t kMaxChanges = 1000;

  // Without `calls` only coming and going is seen.
  DomainMonitor(DomainDirectory& directory, std::unique_ptr<VcpuCalls> calls,
                std::function<Tsc()> read_tsc);

  // Adds the changes since the last poll to info.changes, or beyond kMaxChanges to their domain's
  // changes_left_out, and adds new domains to info.domains (their name, type and vCPUs may come
  // with a later poll). The first poll takes the domains of info.domains as they are. Costs one
  // hypercall for each domain, and one for each vCPU of domains whose number of online vCPUs has
  // changed.
  void Poll(recording::RecordingInfo& info);
  // Returns whether Xen still has the domain, if only as one that is being destroyed.
  [[nodiscard]] bool Exists(DomainId domain) const;

 private:
  struct DomainSnapshot {
    std::optional<DomainState> state;
    std::set<VcpuId> online;
    bool gone = false;
    uint32_t changes = 0;  // number of changes reported so far
  };
  // Limit of readings of a new domain: xenstore has a domain before its name and vCPUs, but some
  // domains never get them.
  static constexpr int kMaxReads = 50;

  [[nodiscard]] std::set<VcpuId> OnlineVcpus(DomainId domain, uint32_t vcpus) const;
  // Returns the state of the domain, if it exists.
  [[nodiscard]] std::optional<DomainState> StateOf(DomainId domain, bool listed) const;
  void AddCreatedDomains(recording::RecordingInfo& info, const std::set<DomainId>& listed,
                         TscRange when);
  // Returns whether another reading may fill in what is not known of a new domain.
  [[nodiscard]] bool IsUnknown(const recording::DomainInfo& domain) const;
  static std::vector<recording::DomainChange> Compare(DomainId domain, const DomainSnapshot& before,
                                                      const DomainSnapshot& now, TscRange when);

  DomainDirectory& directory_;
  std::unique_ptr<VcpuCalls> calls_;
  std::function<Tsc()> read_tsc_;
  std::map<DomainId, DomainSnapshot> seen_;
  std::map<DomainId, int> name_reads_;  // number of readings of each new domain
  std::optional<Tsc> last_poll_;
};

}  // namespace xenoscope::sampler
