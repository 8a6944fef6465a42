// Totals of `xenoscope stat` that Xen has: how long vCPUs ran.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "profile/event_totals.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/host.h"
#include "sampler/xen/idle_times.h"
#include "sampler/xen/run_times.h"

namespace xenoscope::cli {

// The run times of all vCPUs, or of all pCPUs, in a stretch of time. Where Xen does not give them,
// there are none.
class StatRunTimes {
 public:
  StatRunTimes();

  // Begins and ends the stretch.
  void Begin() { begin_ = Read(); }
  void End() { end_ = Read(); }
  // Begins the stretch that follows the one that has ended, so that no time is between them.
  void BeginNext() { begin_ = std::move(end_); }
  // Returns the totals of the domains by `by`; of all, if there are no domains. A pCPU runs while
  // it is not idle.
  [[nodiscard]] profile::EventTotals Totals(profile::TotalsBy by,
                                            const std::vector<DomainId>& domains) const;
  // Returns the domains that there are now; none where Xen does not give them.
  [[nodiscard]] std::vector<recording::DomainInfo> Domains() const;

 private:
  // What Xen has counted up to a time.
  struct Reading {
    sampler::RunTimes vcpus;
    std::vector<uint64_t> idle_pcpus;
    std::chrono::steady_clock::time_point at;  // when they were read
  };

  [[nodiscard]] Reading Read();
  [[nodiscard]] std::vector<profile::CountedPart> OfVcpus(
      const std::vector<DomainId>& domains) const;
  [[nodiscard]] std::vector<profile::CountedPart> OfPcpus() const;

  std::unique_ptr<sampler::DomainDirectory> directory_;
  std::unique_ptr<sampler::VcpuCalls> calls_;
  std::optional<sampler::IdleTimes> idle_times_;
  Reading begin_;
  Reading end_;
};

}  // namespace xenoscope::cli
