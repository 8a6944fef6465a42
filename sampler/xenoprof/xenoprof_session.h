// One session of xenoprof that dom0 leads, being an active domain itself, with other domains active
// (they drain their own buffers) or passive (dom0 drains them).
//
//                       Open                Program            Start
//        (nothing) ---------> kInitialized --------> kReady ---------> kProfiling --+
//            ^                     |                   |    Drain: any number       | Stop
//            |        Close        |       Close       |                            v
//            +---------------------+-------------------+-------------------------kStopped
//                                                                 Close
//
// Xen 4.17 forgives little here, and its crash is the host's. What the order of the calls guards:
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
// domains' samples, so the buffers have to be looked at at intervals anyway.
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

  // Who is sampled beside dom0.
  struct Domains {
    std::vector<DomainId> passive;
    std::vector<DomainId> active;
    // Lets a domain take part that Xen has just listed as active; true: it has to be listed once
    // more. It may be asked several times. Errors: it does not.
    std::function<absl::StatusOr<bool>(DomainId)> enlist;
  };
  struct RefusedDomain {
    DomainId domain;
    absl::Status reason;
  };

  // Ends what a killed session left in Xen. Nothing of it may be mapped any more, and its sampling
  // clock must have been stopped: the caller makes sure that no session is alive.
  static void Recover(XenoprofCalls& calls);

  // What xenoprof calls this processor. Claims nothing; but it must not be asked while a session is
  // alive, which it ends. Errors: no xenoprof in this Xen, CPU not supported (Unimplemented), not
  // dom0 (PermissionDenied).
  static absl::StatusOr<std::string> Probe(XenoprofCalls& calls);

  // Becomes the initiator, gathers the active domains and maps the buffers of dom0 and of the
  // passive ones. `calls` and `read_tsc` outlive the session. A buffer holds up to `samples`
  // samples of one vCPU; Xen gives less when a domain has many vCPUs, and what it gave earlier in
  // the domain's life.
  // Errors, each with what to do: those of InitXenoprof; not dom0 (PermissionDenied), counters in
  // use (FailedPrecondition), a domain that does not exist (NotFound).
  static absl::StatusOr<std::unique_ptr<XenoprofSession>> Open(XenoprofCalls& calls,
                                                               const Domains& domains,
                                                               uint32_t samples,
                                                               std::function<Tsc()> read_tsc);

  XenoprofSession(const XenoprofSession&) = delete;
  XenoprofSession& operator=(const XenoprofSession&) = delete;
  // Closes, when nobody did: a mapping that is left to the process's end costs the host.
  ~XenoprofSession();

  // Event i on counter i, the other counters off; each sample with up to `callers` callers, as far
  // as frame pointers lead. kInitialized -> kReady. Errors (Unimplemented): this Xen follows none.
  absl::Status Program(std::span<const PmuEvent> events, uint32_t callers);
  // kReady -> kProfiling. Then starts `clock`, unless it is null; it outlives the session.
  absl::Status Start(SamplingClock* clock);
  // Empties all buffers into `sink`, one call for each that had something. Returns which part of
  // its room the fullest used, in [0, 1]. kProfiling.
  double Drain(const Sink& sink);
  // Stops the clock and the counters, and drains what came until then. kProfiling -> kStopped.
  absl::Status Stop(const Sink& sink);
  // Unmaps and gives everything back. From any state; the first error, but goes on to the end.
  absl::Status Close();

  State state() const { return state_; }
  const std::string& cpu_type() const { return cpu_.type; }
  uint32_t counters() const { return cpu_.counters; }
  // Who there is: the active domains that take part, and the passive ones, with them those of
  // `refused`, the active ones that did not come. Of `left_out` nothing can be had.
  const std::vector<DomainId>& active() const { return active_; }
  const std::vector<DomainId>& passive() const { return passive_; }
  const std::vector<RefusedDomain>& refused() const { return refused_; }
  const std::vector<RefusedDomain>& left_out() const { return left_out_; }
  // When sampling was on: [started, stopped).
  TscRange sampled() const { return sampled_; }
  // The accounts of each vCPU's buffer; complete after Stop.
  std::vector<recording::StreamInfo> Streams() const { return buffers_.Streams(); }

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
