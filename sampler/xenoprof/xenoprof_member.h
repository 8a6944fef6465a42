// xenoprof in a guest: an active domain of a session that dom0 leads
// (sampler/xenoprof/xenoprof_session.h). Xen logs what the domain does, in every mode, into the
// domain's own buffers, which it drains itself. It needs Xen up to 4.17, or a later build that
// keeps xenoprof, and a PV domain.
//
//   opened --dom0 lists it, Enlist--> enlisted --dom0 starts; Start, Collect ...--> sampling
//          --dom0 stops; Stop, Close--> closed
//
// Only a domain on dom0's list can give its buffers back. If it was not on the list when it closed,
// because dom0's recorder or its own agent was killed, the buffers stay shared, and Xen hands them
// out again only after the domain is listed again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/drain_timer.h"
#include "sampler/event_spec.h"
#include "sampler/pmu_events.h"
#include "sampler/source.h"
#include "sampler/xenoprof/xenoprof_buffers.h"
#include "sampler/xenoprof/xenoprof_calls.h"

namespace xenoscope::sampler {

class XenoprofMember final : public Source {
 public:
  // `events` are as dom0 has them (none: cycles); `clock_hz` is the rate of the TSC that `read_tsc`
  // reads. Claims nothing. Errors: those of InitXenoprof and ResolvePmuEvent; PermissionDenied:
  // Linux lets no program of this guest make hypercalls.
  static absl::StatusOr<std::unique_ptr<XenoprofMember>> Open(std::unique_ptr<XenoprofCalls> calls,
                                                              const std::vector<EventSpec>& events,
                                                              uint64_t clock_hz,
                                                              std::function<Tsc()> read_tsc);
  XenoprofMember(const XenoprofMember&) = delete;
  XenoprofMember& operator=(const XenoprofMember&) = delete;
  ~XenoprofMember() override;

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override;
  [[nodiscard]] recording::Role RoleOf(DomainId /*domain*/) const override {
    return recording::Role::kActive;
  }
  absl::StatusOr<bool> Enlist() override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override {
    return drain_timer_.due();
  }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return sampled_; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override {
    return buffers_.Streams();
  }

 private:
  XenoprofMember(std::unique_ptr<XenoprofCalls> calls, std::function<Tsc()> read_tsc);

  std::unique_ptr<XenoprofCalls> calls_;
  std::function<Tsc()> read_tsc_;
  XenoprofCpu cpu_;
  std::vector<PmuEvent> events_;
  DrainTimer drain_timer_;
  TscRange sampled_;
  XenoprofBuffers buffers_;  // declared after what it uses
};

}  // namespace xenoscope::sampler
