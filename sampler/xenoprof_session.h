// One session of xenoprof with dom0 as initiator and only active domain, and any other domains
// passive.
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
//     session leaves behind.
// Interrupts (VIRQ_XENOPROF) are not asked for: Xen raises none for its own and for passive
// domains' samples, so the buffers have to be looked at at intervals anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "sampler/pmu_events.h"
#include "sampler/sampling_clock.h"
#include "sampler/xenoprof_abi.h"
#include "sampler/xenoprof_calls.h"

namespace xenoscope::sampler {

class XenoprofSession {
 public:
  enum class State : uint8_t { kInitialized, kReady, kProfiling, kStopped, kClosed };

  // What one drain found in one vCPU's buffer: samples by themselves, and samples with callers.
  struct Drained {
    VcpuRef vcpu;
    recording::DrainTimes times;
    std::span<const recording::Entry> entries;
    const recording::TimedChunk& with_callers;
  };
  using Sink = std::function<void(const Drained&)>;

  // Ends what a killed session left in Xen. Nothing of it may be mapped any more, and its sampling
  // clock must have been stopped: the caller makes sure that no session is alive.
  static void Recover(XenoprofCalls& calls);

  // What xenoprof calls this processor. Claims nothing; but it must not be asked while a session is
  // alive, which it ends. Errors: no xenoprof in this Xen, CPU not supported (Unimplemented), not
  // dom0 (PermissionDenied).
  static absl::StatusOr<std::string> Probe(XenoprofCalls& calls);

  // Becomes the initiator and maps the buffers of dom0 and of `passive`. `calls` and `read_tsc`
  // outlive the session. A buffer holds up to `samples` samples of one vCPU; Xen gives less when a
  // domain has many vCPUs, and what it gave earlier in the domain's life.
  // Errors, each with what to do: no xenoprof in this Xen, CPU not supported (Unimplemented), not
  // dom0 (PermissionDenied), counters in use (FailedPrecondition), a domain that does not exist
  // (NotFound).
  static absl::StatusOr<std::unique_ptr<XenoprofSession>> Open(XenoprofCalls& calls,
                                                               std::span<const DomainId> passive,
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
  const std::string& cpu_type() const { return cpu_type_; }
  uint32_t counters() const { return counters_; }
  // When sampling was on: [started, stopped).
  TscRange sampled() const { return sampled_; }
  // The accounts of each vCPU's buffer; complete after Stop.
  std::vector<recording::StreamInfo> Streams() const;

 private:
  struct Buffer;  // one vCPU's
  struct Mapping {
    std::byte* at;
    size_t size;
  };

  XenoprofSession(XenoprofCalls& calls, std::function<Tsc()> read_tsc);

  absl::Status Initialize(std::span<const DomainId> passive, uint32_t samples);
  absl::Status BecomeInitiator();
  absl::Status AddPassive(DomainId domain, uint32_t samples);
  absl::Status MapBuffers(DomainId domain, int32_t count, int32_t size, uint64_t address);
  absl::Status AskForCallers(uint32_t callers);
  double DrainBuffer(Buffer& buffer, const Sink& sink);
  // Counts one entry, and keeps it when it is of a sample that was asked for.
  void TakeEntry(Buffer& buffer, const recording::DrainTimes& times, const XenoprofEntry& found);
  void AddCaller(const XenoprofEntry& found);
  void EndChain();
  int Call(XenoprofOp op);
  template <typename T>
  int Call(XenoprofOp op, T& argument);

  XenoprofCalls& calls_;
  std::function<Tsc()> read_tsc_;
  State state_ = State::kInitialized;
  SamplingClock* clock_ = nullptr;
  std::string cpu_type_;
  uint32_t counters_ = 0;
  std::vector<PmuEvent> events_;
  TscRange sampled_;
  std::vector<Mapping> mappings_;
  std::vector<Buffer> buffers_;
  // Of one drain of one buffer, kept for their memory.
  std::vector<recording::Entry> entries_;
  recording::TimedChunk with_callers_;
  std::optional<recording::TimedEntry> chain_;  // the sample whose callers come now
  std::vector<Address> chain_callers_;
};

}  // namespace xenoscope::sampler
