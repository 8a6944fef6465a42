// The sample buffers that xenoprof shares with the domain that drains them: its own buffers, and in
// dom0 those of the passive domains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "sampler/pmu_events.h"
#include "sampler/xenoprof/xenoprof_abi.h"
#include "sampler/xenoprof/xenoprof_calls.h"

namespace xenoscope::sampler {

// The mapped buffers.
class XenoprofBuffers {
 public:
  // The content of one vCPU's buffer in one drain: samples without callers, and samples with
  // callers.
  struct Drained {
    VcpuRef vcpu;
    recording::DrainTimes times;
    std::span<const recording::Entry> entries;
    const recording::TimedChunk& with_callers;
  };
  using Sink = std::function<void(const Drained&)>;

  // `calls` and `read_tsc` must outlive the buffers.
  XenoprofBuffers(XenoprofCalls& calls, std::function<Tsc()> read_tsc);
  XenoprofBuffers(const XenoprofBuffers&) = delete;
  XenoprofBuffers& operator=(const XenoprofBuffers&) = delete;
  // Unmaps: a mapping that ends only with the process may crash the host.
  ~XenoprofBuffers();

  // Maps the buffers of this domain. A buffer holds up to `samples` samples of one vCPU; Xen grants
  // less when the domain has many vCPUs, and otherwise what it granted first in the domain's life.
  // Errors: they are shared already, or the counters are in use (FailedPrecondition).
  absl::Status MapOwn(DomainId self, uint32_t samples);
  // Maps the buffers of a domain's `count` vCPUs, `size` bytes each, from machine address `address`
  // on.
  absl::Status Map(DomainId domain, int32_t count, int32_t size, uint64_t address);
  void Unmap();
  [[nodiscard]] bool mapped() const { return !mappings_.empty(); }

  // Sets the events of samples: event i is on counter i, of `counters`.
  void SetEvents(std::span<const PmuEvent> events, uint32_t counters);
  // Begins sampling: no sample in the buffers is older than `now`.
  void Begin(Tsc now);
  // Empties all buffers into `sink`, one call for each that had samples. Returns the part of the
  // fullest buffer that was used, in [0, 1].
  double Drain(const Sink& sink);
  // Drains for the last time: nothing is logged any more.
  void End(const Sink& sink);

  // Returns the accounts of each vCPU's buffer; complete after End.
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const;

 private:
  struct Buffer;  // the buffer of one vCPU
  struct Mapping {
    std::byte* at;
    size_t size;
  };

  double DrainBuffer(Buffer& buffer, const Sink& sink);
  // Counts one entry, and keeps it if it is of a sample that was asked for.
  void TakeEntry(Buffer& buffer, const recording::DrainTimes& times, const XenoprofEntry& found);
  void AddCaller(const XenoprofEntry& found);
  void EndChain();

  XenoprofCalls& calls_;
  std::function<Tsc()> read_tsc_;
  std::vector<PmuEvent> events_;
  uint32_t counters_ = 0;
  std::vector<Mapping> mappings_;
  std::vector<Buffer> buffers_;
  // The entries of one drain of one buffer; a member only to reuse its memory.
  std::vector<recording::Entry> entries_;
  recording::TimedChunk with_callers_;
  std::optional<recording::TimedEntry> chain_;  // the sample whose callers come next
  std::vector<Address> chain_callers_;
};

// Returns a sink that writes to a file of samples, which must outlive it.
XenoprofBuffers::Sink SinkTo(recording::SampleWriter& writer);

}  // namespace xenoscope::sampler
