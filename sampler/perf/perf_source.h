// Linux's perf events as a source: the kernel and the processes of the one Linux that runs this
// (dom0, a guest, a machine without Xen), by its counters or its timer, with call chains. Of a PV
// domain's hypervisor perf sees nothing, unless Xen's vPMU has the mode hv or all: then Xen's
// samples come too, and with all those of other domains. Linux keeps of these that they are a
// guest's, and the CPU; the domain, which Xen had told it, it drops. The trace has it.
//
//   one ring for each CPU <-- a dummy event, which tells of processes
//                         <-- each sampled event of that CPU
//
// One Collect: mark the time in the rings (perf_clock.h), empty them, hand on what was taken before
// the mark, of all CPUs in its order; what is later waits for the next one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sampler/drain_timer.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_calls.h"
#include "sampler/perf/perf_clock.h"
#include "sampler/perf/perf_events.h"
#include "sampler/perf/perf_records.h"
#include "sampler/perf/perf_ring.h"
#include "sampler/running_processes.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

struct PerfRequest {
  std::vector<EventSpec> events;  // none: cycles, or time where no counter counts
  bool call_chains = false;       // by frame pointers
  bool jitter = true;             // periods change at random, so that nothing is in step with them
  uint64_t seed = 0;              // of the random periods
  DomainId domain = kDom0;        // that this Linux is
  uint8_t first_event = 0;        // the number of its first event in the recording
  uint64_t clock_hz = 0;          // of the TSC; 0: not known
  // Times are not the better for a shorter one.
  std::chrono::nanoseconds drain_interval = std::chrono::milliseconds(50);
  size_t ring_pages = 64;  // of 4 KiB, for each CPU; a power of two
};

class PerfSource final : public Source {
 public:
  // `running` tells of the processes that there are when sampling starts. Errors: an event that
  // does not exist (NotFound) or that nothing here counts (Unimplemented); PermissionDenied; those
  // of PerfError.
  static absl::StatusOr<std::unique_ptr<PerfSource>> Open(
      const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
      std::function<std::vector<RunningProcess>()> running);
  PerfSource(const PerfSource&) = delete;
  PerfSource& operator=(const PerfSource&) = delete;
  ~PerfSource() override;

  recording::SourceInfo Info() const override;
  std::vector<recording::EventInfo> Events() const override;
  recording::Role RoleOf(DomainId domain) const override;
  std::vector<std::string> Notes() const override { return notes_; }
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override { return drain_timer_.due(); }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  // Linux ends the events of a CPU that goes offline; one that comes, or comes again, gets new
  // ones. Collect does it once a second.
  void PollCpus();
  absl::Status Stop(recording::SampleWriter& writer) override;
  // Of this Linux: its vDSO, and what compilers at run time made.
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  TscRange Sampled() const override { return sampled_; }
  std::vector<recording::StreamInfo> Streams() const override;
  std::vector<std::string> FinalNotes() const override { return final_notes_; }

 private:
  struct Cpu {
    PerfRing ring;
    int ring_fd;           // -1: it is offline, and all is closed
    std::vector<int> fds;  // of the events, in their order
    recording::StreamInfo stream;
  };
  struct Event {
    PerfEvent event;
    uint64_t samples = 0;  // with the counts between them, for the period in the end
    double counts = 0;
  };
  // A sample, or what became of a process, whose time on the TSC is not known yet.
  struct PendingSample {
    uint64_t time = 0;
    recording::TimedEntry entry;
    bool domain_unknown = false;  // Linux does not know whose; entry.vcpu is then the pCPU
    size_t cpu = 0;               // index
    size_t callers_at = 0;        // in callers_
    size_t callers = 0;
  };
  struct PendingProcess {
    uint64_t time = 0;
    recording::ProcessEntry entry;
    std::optional<recording::MapEntry> map;
    std::string text;
  };

  PerfSource(const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
             std::function<std::vector<RunningProcess>()> running);

  absl::Status OpenAll();
  // OK also when the CPU has just gone offline.
  absl::Status OpenCpu(uint32_t number);
  absl::Status OpenEvent(Cpu& cpu, uint32_t number, size_t event);
  Cpu* OpenCpuOf(uint32_t number);
  absl::Status EnableEvents(const Cpu& cpu);
  void CloseCpu(Cpu& cpu);
  absl::Status OnCpuOnline(uint32_t cpu);
  void ReadRunning();
  // Marks the time, empties the rings, and holds what was in them. Returns which part of its room
  // the fullest used, in [0, 1].
  double Drain();
  // One try of it: false when marks were lost, so that the time is not known.
  bool DrainOnce(double& fill);
  void Take(size_t cpu, Bytes record);
  void AddPending(size_t cpu, const PerfSample& sample);
  void AddPending(const PerfName& name);
  void AddPending(const PerfMap& map);
  void AddPending(const PerfTask& task);
  // Writes what was taken up to `until`, in its order.
  void WriteUntil(uint64_t until, recording::SampleWriter& writer);
  void RandomizePeriods();

  PerfRequest request_;
  std::unique_ptr<PerfCalls> calls_;
  std::function<std::vector<RunningProcess>()> running_;
  std::vector<std::string> notes_;
  std::vector<Event> events_;
  std::vector<Cpu> cpus_;
  absl::flat_hash_map<uint64_t, size_t> event_of_id_;
  std::string vpmu_;  // mode
  PerfClock clock_;
  std::vector<TscRange> marks_;        // of this drain
  std::vector<uint64_t> marks_found_;  // of this drain: when, by perf's clock
  std::vector<PendingSample> pending_samples_;
  std::vector<Address> callers_;
  std::vector<PendingProcess> pending_processes_;
  recording::TimedChunk chunk_;                 // kept for their memory
  recording::TimedChunk domain_unknown_chunk_;  // likewise
  recording::ProcessChunk process_chunk_;
  recording::ProcessChunk running_chunk_;  // what was there at the start, until it is written
  TscRange sampled_;
  std::mt19937_64 random_;
  DrainTimer drain_timer_;
  std::chrono::steady_clock::time_point next_randomization_;
  std::chrono::steady_clock::time_point next_cpu_poll_;  // of CPUs
  std::set<uint32_t> refused_;                           // CPUs that came, and cannot be sampled
  std::vector<std::string> final_notes_;
};

}  // namespace xenoscope::sampler
