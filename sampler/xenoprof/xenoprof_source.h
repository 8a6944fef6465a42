// Xen's own profiler as a source: all domains at once, in every mode, by NMIs of the performance
// counters. It needs Xen up to 4.17, or a later build that keeps xenoprof, and a PV dom0.
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
  std::vector<EventSpec> events;  // events; none: cycles
  bool call_chains = false;
  XenoprofSession::Domains domains;
  std::optional<uint32_t> hpet_hz;  // rate of NMIs by the HPET, instead of counters
  std::chrono::nanoseconds drain_interval = std::chrono::milliseconds(5);
  // Samples that a vCPU's buffer holds; Xen keeps the first value for a domain.
  uint32_t buffer_samples = 2048;
  uint64_t clock_hz = 0;  // rate of the TSC
};

class XenoprofSource final : public Source {
 public:
  // Ends what a killed recording has left running in Xen, if `lock` has a note of it.
  static void RecoverKilled(const SessionLock& lock);

  // Opens a session. `lock` must outlive the source. Errors: those of XenoprofSession::Open,
  // OpenXenoprofCalls, OpenHpet; Unimplemented: dom0 is not a PV domain.
  static absl::StatusOr<std::unique_ptr<XenoprofSource>> Open(XenoprofRequest request,
                                                              const SessionLock& lock);
  XenoprofSource(const XenoprofSource&) = delete;
  XenoprofSource& operator=(const XenoprofSource&) = delete;
  ~XenoprofSource() override;

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override;
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override {
    return drain_timer_.due();
  }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return session_->sampled(); }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override {
    return session_->Streams();
  }
  // Returns the session, with its active, passive and refused domains.
  [[nodiscard]] const XenoprofSession& session() const { return *session_; }

 private:
  XenoprofSource(XenoprofRequest request, const SessionLock& lock)
      : request_(std::move(request)), lock_(&lock), drain_timer_(request_.drain_interval) {}

  absl::Status Ready();
  [[nodiscard]] recording::NmiCounters CountNmis() const;

  XenoprofRequest request_;
  std::vector<PmuEvent> events_;
  const SessionLock* lock_;
  bool note_written_ = false;  // whether the lock's file notes that there is something to give back
  std::unique_ptr<XenoprofCalls> calls_;
  std::unique_ptr<HpetClock> clock_;
  std::unique_ptr<XenoprofSession> session_;  // declared after what it uses
  DrainTimer drain_timer_;
};

}  // namespace xenoscope::sampler
