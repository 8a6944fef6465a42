// A source that needs nothing but Xen: dom0 polls the guests' vCPUs, one at a random instant,
// and reads where it is. Every Xen, every processor, PV, PVH and HVM guests; not dom0 itself.
//
//   exponential pause --> a vCPU at random --> its state: blocked: counted, and left alone
//                                                         running or waiting: stopped, read, let go
//
// The instants are a Poisson process, so that nothing that a guest does is in step with them. The
// stop is one hypercall long; how long that is, is measured. A vCPU that runs is a sample of time.
// One that waits for a pCPU is a sample of where it was preempted: an event of its own. On a host
// with one pCPU guests never run while dom0 polls, so that there are only those. Callers are read
// from the stack right after the vCPU was let go; where it has run on for long meanwhile, as Xen
// tells, they are none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/source.h"
#include "sampler/vcpu/guest_memory.h"
#include "sampler/vcpu/guest_stack.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

struct VcpuRequest {
  std::vector<recording::DomainInfo> domains;  // to poll
  double poll_hz = 250;                        // a second, at each vCPU, on the average
  uint64_t seed = 0;
  uint8_t first_event = 0;  // the number of its first event in the recording
  uint64_t clock_hz = 0;    // of the TSC
  uint32_t pcpus = 0;
};

class VcpuSource final : public Source {
 public:
  // `memory`: to follow call chains with; null: without. `read_tsc` outlives the source. Errors
  // (NotFound): no vCPUs to poll.
  static absl::StatusOr<std::unique_ptr<VcpuSource>> Open(const VcpuRequest& request,
                                                          std::unique_ptr<VcpuCalls> calls,
                                                          std::unique_ptr<GuestMemory> memory,
                                                          std::function<Tsc()> read_tsc);

  recording::SourceInfo Info() const override;
  std::vector<recording::EventInfo> Events() const override;
  recording::Role RoleOf(DomainId domain) const override;
  std::vector<std::string> Notes() const override;
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override { return due_; }
  // Looks once.
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override { return absl::OkStatus(); }
  TscRange Sampled() const override { return sampled_; }
  std::vector<recording::StreamInfo> Streams() const override { return streams_; }

 private:
  enum Event : uint8_t { kRunning, kPreempted };

  VcpuSource(const VcpuRequest& request, std::unique_ptr<VcpuCalls> calls,
             std::unique_ptr<GuestMemory> memory, std::function<Tsc()> read_tsc);

  // From `since` on.
  void AddVcpus(const recording::DomainInfo& domain, Tsc since);
  void Poll(recording::StreamInfo& stream, recording::SampleWriter& writer);
  void AddSample(recording::StreamInfo& stream, TscRange when, const VcpuState& state,
                 const VcpuContext& context, recording::SampleWriter& writer);
  // `state` is that of before the stop.
  void UnwindCallers(recording::StreamInfo& stream, const VcpuState& state,
                     const VcpuContext& context);
  std::chrono::nanoseconds RandomInterval();
  // Cycles of a vCPU from poll to poll: as asked for, and once it is over as it was.
  uint64_t Period() const;

  double poll_hz_;
  uint64_t seed_;
  uint8_t first_event_;
  uint64_t clock_hz_;
  uint32_t pcpus_;
  std::unique_ptr<VcpuCalls> calls_;
  std::optional<MappedFrames> frames_;  // where call chains are wanted
  std::function<Tsc()> read_tsc_;
  std::mt19937_64 random_;
  std::vector<recording::StreamInfo> streams_;  // by vCPU
  std::vector<TscRange> polled_ranges_;         // of streams_: when they were polled
  std::vector<size_t> alive_;                   // indices into streams_
  std::chrono::steady_clock::time_point due_;
  TscRange sampled_;
  std::vector<Address> callers_;  // kept for their memory
  recording::TimedChunk chunk_;
};

}  // namespace xenoscope::sampler
