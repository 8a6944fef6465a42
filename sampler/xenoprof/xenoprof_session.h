// A session of xenoprof that dom0 leads. dom0 is an active domain of it; other domains are active
// (they drain their own buffers) or passive (dom0 drains them).
//
//                       Open                Program            Start
//        (nothing) ---------> kInitialized --------> kReady ---------> kProfiling --+
//            ^                     |                   |    Drain: any number       | Stop
//            |        Close        |       Close       |                            v
//            +---------------------+-------------------+-------------------------kStopped
//                                                                 Close
//
// A wrong call can crash Xen 4.17, and the host with it. The order of the calls ensures this:
//   - Every buffer is unmapped before an operation that takes its pages back (disable_virq,
//     release_counters, reset_passive_list, shutdown): a mapping that ends later faults in Xen.
//   - An NMI source outside the counters (SamplingClock) runs only between Start and Stop: between
//     reserve_counters and release_counters an NMI finds Xen's arrays, outside it finds null.
//   - Every counter index is programmed: Xen keeps the configuration of earlier sessions.
//   - reset_active_list comes first: it alone repairs the count of active domains that a broken
//     session leaves behind. It comes before shutdown, too: shutdown forgets the domains on the
//     list without letting go of them.
//   - Other active domains take part between set_active and start, and leave between Stop and
//     Close (sampler/xenoprof/xenoprof_member.h). One that does neither costs itself its buffers,
//     until it takes part again; Xen keeps the remains of one that was listed and never came.
//   - A domain that is destroyed in between needs nothing done: the lists hold references, and Xen
//     frees a domain's buffers after the last one only (complete_domain_destroy). No NMI finds
//     them freed.
// Interrupts (VIRQ_XENOPROF) are not asked for: Xen raises none for its own and for passive
// domains' samples, so the buffers have to be polled anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "sampler/pmu_events.h"
#include "sampler/xenoprof/sampling_clock.h"
#include "sampler/xenoprof/xenoprof_buffers.h"
#include "sampler/xenoprof/xenoprof_calls.h"

namespace xenoscope::sampler {

class XenoprofSession {
 public:
  enum class State : uint8_t { kInitialized, kReady, kProfiling, kStopped, kClosed };

  using Sink = XenoprofBuffers::Sink;

  // The sampled domains other than dom0.
  struct Domains {
    std::vector<DomainId> passive;
    std::vector<DomainId> active;
    // Lets a domain take part that Xen has just listed as active. True: it has to be listed once
    // more. May be called several times. Errors: it does not take part.
    std::function<absl::StatusOr<bool>(DomainId)> enlist;
  };
  struct RefusedDomain {
    DomainId domain;
    absl::Status reason;
  };

  // Ends what a killed session left in Xen. None of it may be mapped any more, and its sampling
  // clock must have been stopped: the caller makes sure that no session is alive.
  static void Recover(XenoprofCalls& calls);

  // Returns xenoprof's name of this processor. Claims nothing, but must not be called while a
  // session is alive, which it would end. Errors: no xenoprof in this Xen, CPU not supported
  // (Unimplemented), not dom0 (PermissionDenied).
  static absl::StatusOr<std::string> Probe(XenoprofCalls& calls);

  // Becomes the initiator, gathers the active domains, and maps the buffers of dom0 and of the
  // passive domains. `calls` and `read_tsc` must outlive the session. A buffer holds up to
  // `samples` samples of one vCPU; Xen grants less when a domain has many vCPUs, and otherwise what
  // it granted first in the domain's life. Errors, each with what to do: those of InitXenoprof; not
  // dom0 (PermissionDenied), counters in use (FailedPrecondition), a domain does not exist
  // (NotFound).
  static absl::StatusOr<std::unique_ptr<XenoprofSession>> Open(XenoprofCalls& calls,
                                                               const Domains& domains,
                                                               uint32_t samples,
                                                               std::function<Tsc()> read_tsc);

  XenoprofSession(const XenoprofSession&) = delete;
  XenoprofSession& operator=(const XenoprofSession&) = delete;
  // Closes, unless Close was called: a mapping that ends only with the process can crash the host.
  ~XenoprofSession();

  // Programs event i on counter i, and turns the other counters off; each sample has up to
  // `callers` callers, by frame pointers. kInitialized -> kReady. Errors (Unimplemented): this Xen
  // follows no callers.
  absl::Status Program(std::span<const PmuEvent> events, uint32_t callers);
  // Starts the counters, then `clock`, which may be null and must outlive the session. kReady ->
  // kProfiling.
  absl::Status Start(SamplingClock* clock);
  // Empties all buffers into `sink`, one call for each that had samples. Returns the part of the
  // fullest buffer that was used, in [0, 1]. In kProfiling only.
  double Drain(const Sink& sink);
  // Stops the clock and the counters, and drains the last samples. kProfiling -> kStopped.
  absl::Status Stop(const Sink& sink);
  // Unmaps and gives everything back, from any state. After an error it goes on, and returns the
  // first one.
  absl::Status Close();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& cpu_type() const { return cpu_.type; }
  [[nodiscard]] uint32_t counters() const { return cpu_.counters; }
  // Return the active domains that take part; the passive ones, including the `refused` ones that
  // were to be active; and those `left_out`, which cannot be sampled.
  [[nodiscard]] const std::vector<DomainId>& active() const { return active_; }
  [[nodiscard]] const std::vector<DomainId>& passive() const { return passive_; }
  [[nodiscard]] const std::vector<RefusedDomain>& refused() const { return refused_; }
  [[nodiscard]] const std::vector<RefusedDomain>& left_out() const { return left_out_; }
  // Returns the range of time of sampling, [started, stopped).
  [[nodiscard]] TscRange sampled() const { return sampled_; }
  // Returns the accounts of each vCPU's buffer; complete after Stop.
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const { return buffers_.Streams(); }

 private:
  XenoprofSession(XenoprofCalls& calls, std::function<Tsc()> read_tsc);

  static int ReleaseXenoprof(XenoprofCalls& calls);
  absl::Status Initialize(const Domains& domains, uint32_t samples);
  absl::Status BecomeInitiator();
  absl::Status EnlistActive(const Domains& domains);
  absl::StatusOr<bool> Enlist(DomainId domain,
                              const std::function<absl::StatusOr<bool>(DomainId)>& enlist);
  absl::Status AddPassive(DomainId domain, uint32_t samples);
  absl::Status SetBacktrace(uint32_t callers);

  XenoprofCalls& calls_;
  std::function<Tsc()> read_tsc_;
  State state_ = State::kInitialized;
  SamplingClock* clock_ = nullptr;
  XenoprofCpu cpu_;
  std::vector<DomainId> active_;
  std::vector<DomainId> passive_;
  std::vector<RefusedDomain> refused_;
  std::vector<RefusedDomain> left_out_;
  TscRange sampled_;
  XenoprofBuffers buffers_;
};

}  // namespace xenoscope::sampler
