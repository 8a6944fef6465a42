// A source that needs nothing but Xen: dom0 polls the guests' vCPUs, one at each random instant,
// and reads its registers. It works with every Xen and processor, for PV, PVH and HVM guests; not
// for dom0 itself.
//
//   exponential pause --> a vCPU at random --> its state: blocked: counted, and left alone
//                                                         running or waiting: stopped, read, let go
//
// The instants are a Poisson process, so that no guest is in step with them. A vCPU is stopped for
// one hypercall, whose length is measured. A vCPU that runs is a sample of time. One that waits for
// a pCPU is a sample of where it was preempted, which is an event of its own. On a host with one
// pCPU guests never run while dom0 polls, so that all samples are of that event. The stack of a
// kernel, and callers by frame pointers, are read right after the stop; if the vCPU has run for
// long meanwhile, by Xen's account, they are dropped. Frames stay mapped, so that a stack is
// read in microseconds when it is met again. Which files the program consists of comes from the
// guest's memory, too; the search may take a part of the time only.
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
#include "sampler/stack_rate.h"
#include "sampler/vcpu/guest_memory.h"
#include "sampler/vcpu/guest_programs.h"
#include "sampler/vcpu/guest_stack.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

struct VcpuRequest {
  std::vector<recording::DomainInfo> domains;  // domains to poll
  double poll_hz = 250;                        // mean number of polls a second of each vCPU
  uint64_t seed = 0;
  uint8_t first_event = 0;  // number of its first event in the recording
  uint64_t clock_hz = 0;    // rate of the TSC
  uint32_t pcpus = 0;
};

class VcpuSource final : public Source {
 public:
  // `memory` is for call chains; null: without. `read_tsc` must outlive the source. Errors
  // (NotFound): no vCPUs to poll.
  static absl::StatusOr<std::unique_ptr<VcpuSource>> Open(const VcpuRequest& request,
                                                          std::unique_ptr<VcpuCalls> calls,
                                                          std::unique_ptr<GuestMemory> memory,
                                                          std::function<Tsc()> read_tsc);

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override;
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override;
  [[nodiscard]] std::vector<std::string> Notes() const override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override { return due_; }
  // Polls one vCPU.
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override { return absl::OkStatus(); }
  [[nodiscard]] TscRange Sampled() const override { return sampled_; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override { return streams_; }

 private:
  enum Event : uint8_t { kRunning, kPreempted };

  VcpuSource(const VcpuRequest& request, std::unique_ptr<VcpuCalls> calls,
             std::unique_ptr<GuestMemory> memory, std::function<Tsc()> read_tsc);

  // Adds the domain's vCPUs, polled from `since` on.
  void AddVcpus(const recording::DomainInfo& domain, Tsc since);
  void Poll(recording::StreamInfo& stream, recording::SampleWriter& writer);
  void AddSample(recording::StreamInfo& stream, TscRange when, const VcpuState& state,
                 const VcpuContext& context, recording::SampleWriter& writer);
  // Stops polling the vCPU. O(vCPUs).
  void Leave(size_t stream);
  // Leaves domains that are being destroyed: their memory must not be held.
  void LeaveDying();
  // Sets found_programs_ to what is new of the files in the vCPU's address space. Returns the
  // number of that.
  uint16_t FindPrograms(DomainId domain, Tsc when, const VcpuContext& context);
  // Reads the stacks, and the callers by frame pointers. `state` is from before `stopping`, and the
  // stop from after it.
  void ReadStack(recording::StreamInfo& stream, const VcpuState& state, Tsc stopping,
                 const VcpuContext& context);
  // Returns whether the vCPU ran for so long since the stop that its stack has changed.
  bool HasRunOn(VcpuRef vcpu, const VcpuState& state, Tsc stopping);
  // Adds the sample with what ReadStack found.
  void AddWithStack(DomainId domain, recording::TimedEntry entry, const VcpuContext& context,
                    recording::SampleWriter& writer);
  // Adds what ReadStack found to stack_block_ and outer_, if there is room. Returns the place of
  // the innermost stack.
  recording::StackEntry AddStacks(const VcpuContext& context);
  std::chrono::nanoseconds RandomInterval();
  // Returns the cycles from poll to poll of a vCPU: as requested, and after sampling as measured.
  [[nodiscard]] uint64_t Period() const;

  double poll_hz_;
  uint64_t seed_;
  uint8_t first_event_;
  uint64_t clock_hz_;
  uint32_t pcpus_;
  std::unique_ptr<VcpuCalls> calls_;
  std::optional<MappedFrames> frames_;     // set when call chains are wanted
  std::optional<GuestPrograms> programs_;  // set when frames_ is
  Cycles programs_took_ = 0;               // time that the search for programs took
  std::function<Tsc()> read_tsc_;
  std::mt19937_64 random_;
  std::vector<recording::StreamInfo> streams_;  // one for each vCPU
  // Times when the vCPU of the same index in streams_ was polled.
  std::vector<TscRange> polled_ranges_;
  std::vector<size_t> alive_;  // indices in streams_
  std::chrono::steady_clock::time_point due_;
  TscRange sampled_;
  std::vector<Address> callers_;  // members only to reuse their memory
  StackPieces stacks_;
  absl::InlinedVector<recording::OuterStackEntry, 2> outer_;
  recording::TimedChunk chunk_;
  recording::ProcessChunk found_programs_;
  recording::StackBlock stack_block_;
  StackRate stack_rate_;
  recording::StackInfo stack_info_;
};

}  // namespace xenoscope::sampler
