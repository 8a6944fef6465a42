// What becomes of domains and their vCPUs while they are recorded: a poll now and then, and what
// differs from the poll before is a change.
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
  // Of one domain, beside its coming and going. A guest may change its vCPUs and suspend itself as
  // often as it likes.
  static constexpr uint32_t kMaxChanges = 1000;

  // Without `calls` only coming and going is seen.
  DomainMonitor(DomainDirectory& directory, std::unique_ptr<VcpuCalls> calls,
                std::function<Tsc()> read_tsc);

  // Adds to info.changes what happened since the last poll, or beyond kMaxChanges to its domain's
  // changes_left_out, and to info.domains who came (whose
  // name, type and vCPUs may come with a later poll). The first poll takes those of info.domains as
  // they are. One hypercall a domain, and one a vCPU of domains that have more or fewer of them
  // online than before.
  void Poll(recording::RecordingInfo& info);

 private:
  struct DomainSnapshot {
    std::optional<DomainState> state;
    std::set<VcpuId> online;
    bool gone = false;
    uint32_t changes = 0;  // that were told of
  };
  // xenstore has a domain before it has its name and its vCPUs; but some never get them.
  static constexpr int kMaxReads = 50;

  std::set<VcpuId> OnlineVcpus(DomainId domain, uint32_t vcpus) const;
  // Whether the domain is there, and how.
  std::optional<DomainState> StateOf(DomainId domain, bool listed) const;
  void AddCreatedDomains(recording::RecordingInfo& info, const std::set<DomainId>& listed,
                         TscRange when);
  // Whether another reading may tell what is not known of a domain that came.
  bool IsUnknown(const recording::DomainInfo& domain) const;
  static std::vector<recording::DomainChange> Compare(DomainId domain, const DomainSnapshot& before,
                                                      const DomainSnapshot& now, TscRange when);

  DomainDirectory& directory_;
  std::unique_ptr<VcpuCalls> calls_;
  std::function<Tsc()> read_tsc_;
  std::map<DomainId, DomainSnapshot> seen_;
  std::map<DomainId, int> name_reads_;  // of domains that came
  std::optional<Tsc> last_poll_;
};

}  // namespace xenoscope::sampler
