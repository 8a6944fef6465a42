// Totals of `xenoscope stat` that Xen has: how long vCPUs ran.
#pragma once

#include <memory>
#include <vector>

#include "base/ids.h"
#include "profile/event_totals.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/host.h"
#include "sampler/xen/run_times.h"

namespace xenoscope::cli {

// The run times of all vCPUs in a stretch of time. Where Xen does not give them, there are none.
class StatRunTimes {
 public:
  StatRunTimes();

  // Begins and ends the stretch.
  void Begin() { begin_ = Read(); }
  void End() { end_ = Read(); }
  // Returns the totals of the domains by `by`; of all, if there are no domains.
  [[nodiscard]] profile::EventTotals Totals(profile::TotalsBy by,
                                            const std::vector<DomainId>& domains) const;
  // Returns the domains that there are now; none where Xen does not give them.
  [[nodiscard]] std::vector<recording::DomainInfo> Domains() const;

 private:
  [[nodiscard]] sampler::RunTimes Read() const;

  std::unique_ptr<sampler::DomainDirectory> directory_;
  std::unique_ptr<sampler::VcpuCalls> calls_;
  sampler::RunTimes begin_;
  sampler::RunTimes end_;
};

}  // namespace xenoscope::cli
