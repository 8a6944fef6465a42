// Xen's own profiler as a source: all domains at once, in every mode, by NMIs of the performance
// counters. Xen up to 4.17, and later builds that keep it; PV dom0 only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/drain_timer.h"
#include "sampler/pmu_events.h"
#include "sampler/session_lock.h"
#include "sampler/source.h"
#include "sampler/xenoprof/hpet_clock.h"
#include "sampler/xenoprof/xenoprof_calls.h"
#include "sampler/xenoprof/xenoprof_session.h"

namespace xenoscope::sampler {

struct XenoprofRequest {
  std::vector<EventSpec> events;  // none: cycles
  bool call_chains = false;
  XenoprofSession::Domains domains;
  std::optional<uint32_t> hpet_hz;  // NMIs by the HPET instead of counters
  std::chrono::nanoseconds drain_interval = std::chrono::milliseconds(5);
  uint32_t buffer_samples = 2048;  // of one vCPU; Xen keeps what was first asked for a domain
  uint64_t clock_hz = 0;           // of the TSC
};

class XenoprofSource final : public Source {
 public:
  // Ends what a killed recording has left running in Xen, as `lock` tells; else nothing.
  static void RecoverKilled(const SessionLock& lock);

  // Makes a session. `lock` outlives the source. Errors: those of XenoprofSession::Open,
  // OpenXenoprofCalls, OpenHpet; Unimplemented: dom0 is not a PV domain.
  static absl::StatusOr<std::unique_ptr<XenoprofSource>> Open(XenoprofRequest request,
                                                              const SessionLock& lock);
  XenoprofSource(const XenoprofSource&) = delete;
  XenoprofSource& operator=(const XenoprofSource&) = delete;
  ~XenoprofSource() override;

  recording::SourceInfo Info() const override;
  std::vector<recording::EventInfo> Events() const override;
  recording::Role RoleOf(DomainId domain) const override;
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override { return drain_timer_.due(); }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override;
  TscRange Sampled() const override { return session_->sampled(); }
  std::vector<recording::StreamInfo> Streams() const override { return session_->Streams(); }
  // Who is active and passive, and who is not what it was to be.
  const XenoprofSession& session() const { return *session_; }

 private:
  XenoprofSource(XenoprofRequest request, const SessionLock& lock)
      : request_(std::move(request)), lock_(&lock), drain_timer_(request_.drain_interval) {}

  absl::Status Ready();
  recording::NmiCounters CountNmis() const;

  XenoprofRequest request_;
  std::vector<PmuEvent> events_;
  const SessionLock* lock_;
  bool note_written_ = false;  // in the lock's file: there is something to give back
  std::unique_ptr<XenoprofCalls> calls_;
  std::unique_ptr<HpetClock> clock_;
  std::unique_ptr<XenoprofSession> session_;  // after what it uses
  DrainTimer drain_timer_;
};

}  // namespace xenoscope::sampler
