// Linux's perf events as a source: the kernel and the processes of the Linux that runs this program
// (dom0, a guest, or a machine without Xen), by its counters or its timer, with call chains. In a
// PV domain perf does not see the hypervisor, unless Xen's vPMU has the mode hv or all: then
// samples of Xen come too, and with all those of other domains. Of these samples Linux keeps the
// CPU and that they are a guest's, but drops the domain, which the trace has.
//
//   one ring for each CPU <-- a dummy event, for records of processes
//                         <-- each sampled event of that CPU
//
// One Collect marks the time in the rings (perf_clock.h), empties them, and hands on the samples of
// all CPUs that were taken before the mark, in the order of time; later ones wait for the next
// Collect.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sampler/drain_timer.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_calls.h"
#include "sampler/perf/perf_clock.h"
#include "sampler/perf/perf_events.h"
#include "sampler/perf/perf_map_watch.h"
#include "sampler/perf/perf_records.h"
#include "sampler/perf/perf_ring.h"
#include "sampler/running_processes.h"
#include "sampler/source.h"
#include "sampler/stacked_chunk.h"
#include "sampler/xen/behalf.h"

namespace xenoscope::sampler {

// Linux's records of samples have at most 64 KiB: limit of PerfRequest::stack_bytes.
inline constexpr uint32_t kMaxStackBytes = 65528;

struct PerfRequest {
  std::vector<EventSpec> events;  // events; none: cycles, or time where no counter counts
  bool call_chains = false;       // whether samples have callers
  // With call_chains: limit in bytes, a multiple of 8, of the piece of the user stack that samples
  // have instead of callers in user mode, to be unwound later. 0: callers by frame pointers.
  uint32_t stack_bytes = 0;
  // With call_chains: whether the processor's branch records give the callers in user mode.
  bool branch_records = false;
  double stack_bytes_per_second = StackRate::kBytesPerSecond;  // limit of what stacks take
  // The same, of all time.
  uint64_t all_stack_bytes = std::numeric_limits<uint64_t>::max();
  bool jitter = true;  // whether periods change at random, so that no program is in step with them
  uint64_t seed = 0;   // seed of the random periods
  DomainId domain = kDom0;  // domain that this Linux is
  uint8_t first_event = 0;  // number of its first event in the recording
  uint64_t clock_hz = 0;    // rate of the TSC; 0: not known
  // The interval between drains; a shorter one does not make times more exact.
  std::chrono::nanoseconds drain_interval = std::chrono::milliseconds(50);
  // Pages of 4 KiB for each CPU, a power of two; 0: what the samples need.
  size_t ring_pages = 0;
  // With stacks: limit of the pages of all CPUs, beyond 64 for each.
  size_t most_ring_pages = 65536;
  bool sends_perf_maps = false;  // whether what JIT compilers write is among the samples, too
  BehalfOf behalf_of{};
  std::vector<std::string> vpmu_problems{};  // what keeps Xen's vPMU from sampling what it should
};

class PerfSource final : public Source {
 public:
  // `running` returns the processes that exist when sampling starts; while it samples, `perf_maps`
  // watches those that may have a JIT compiler. Errors: an event does not exist (NotFound) or
  // cannot be counted here, or not with branch records (Unimplemented); PermissionDenied; those of
  // PerfError.
  static absl::StatusOr<std::unique_ptr<PerfSource>> Open(
      const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
      std::function<std::vector<RunningProcess>()> running,
      std::shared_ptr<PerfMapWatch> perf_maps = std::make_shared<PerfMapWatch>());
  PerfSource(const PerfSource&) = delete;
  PerfSource& operator=(const PerfSource&) = delete;
  ~PerfSource() override;

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override;
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override;
  [[nodiscard]] std::vector<std::string> Notes() const override { return notes_; }
  absl::Status PrepareStart() override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override {
    return drain_timer_.due();
  }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  // Returns whether Xen's vPMU gives it samples of Xen.
  [[nodiscard]] bool SamplesXen() const;
  // Opens events for CPUs that have come online: Linux ends the events of a CPU that goes offline.
  // Collect calls it once a second.
  void PollCpus();
  absl::Status Stop(recording::SampleWriter& writer) override;
  // Saves the functions of JIT compilers that are watched.
  absl::Status SaveSoFar(const recording::Writer& writer) override;
  // Saves the vDSO of this Linux, and the functions of its JIT compilers.
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return sampled_; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override;
  [[nodiscard]] std::vector<std::string> FinalNotes() const override;

 private:
  struct Cpu {
    PerfRing ring;
    int ring_fd;           // -1: the CPU is offline, and its events are closed
    std::vector<int> fds;  // file descriptors of the events, in their order
    recording::StreamInfo stream;
  };
  struct Event {
    PerfEvent event;
    std::optional<size_t> leader{};  // index in events_ of the event that leads its group
    // Whether samples of modes that were not requested come too: Xen's counters know rings only.
    bool by_rings = false;
    // Number of samples, with the sum of counts between them, from which the period is computed at
    // the end.
    uint64_t samples = 0;
    double counts = 0;
  };
  // A sample, or a record of a process, whose TSC is not known yet.
  struct PendingSample {
    uint64_t time = 0;
    recording::TimedEntry entry;
    // Whether Linux does not know the domain; entry.vcpu is then the pCPU.
    bool domain_unknown = false;
    size_t cpu = 0;         // index in cpus_
    size_t callers_at = 0;  // index in callers_
    size_t callers = 0;
    bool has_stack = false;   // registers_at is set
    size_t registers_at = 0;  // index in registers_
    size_t stack_at = 0;      // index in stacks_
    size_t stack_bytes = 0;
  };
  struct PendingProcess {
    uint64_t time = 0;
    recording::ProcessEntry entry;
    std::optional<recording::MapEntry> map;
    std::string text;
  };

  PerfSource(const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
             std::function<std::vector<RunningProcess>()> running,
             std::shared_ptr<PerfMapWatch> perf_maps);

  absl::Status OpenAll();
  // Sets in which modes the event is counted.
  absl::Status SetModes(Event& event);
  // Opens the events of a CPU; OK also when it has just gone offline.
  absl::Status OpenCpu(uint32_t number);
  absl::Status OpenEvent(Cpu& cpu, uint32_t number, size_t event);
  // Returns the event's attributes, with what its samples are to have.
  [[nodiscard]] perf_event_attr SampledAttributes(const PerfEvent& event) const;
  // Returns why branch records cannot come with the event's samples, if they cannot.
  absl::Status CheckBranchRecords(const PerfEvent& event);
  Cpu* OpenCpuOf(uint32_t number);
  absl::Status EnableEvents(const Cpu& cpu);
  void CloseCpu(Cpu& cpu);
  absl::Status OnCpuOnline(uint32_t cpu);
  void ReadRunning();
  // Marks the time, empties the rings, and keeps their records. Returns the part of the fullest
  // ring that was used, in [0, 1].
  double Drain();
  // Tries that once: false when marks were lost, so that the time is not known.
  bool DrainOnce(double& fill);
  void Take(size_t cpu, Bytes record);
  void AddPending(size_t cpu, const PerfSample& sample);
  // Adds the callers to callers_, and their numbers to the entry.
  void AddCallers(const PerfSample& sample, recording::TimedEntry& entry);
  void AddPending(const PerfName& name);
  void AddPending(const PerfMap& map);
  void AddPending(const PerfTask& task);
  // Returns the number of a mapped file whose build-id is not known, as MapEntry has it; 0: it is
  // no file, or there are too many.
  uint32_t NumberOfFileWithoutId(std::string_view path, uint64_t inode);
  // Writes the ids of these files. Reads the files, which may take some seconds.
  void WriteFileIds(recording::SampleWriter& writer);
  // Returns the record of the domain on whose behalf the process works, if it does.
  [[nodiscard]] std::optional<recording::ProcessEntry> BehalfEntry(uint32_t pid,
                                                                   std::string_view name) const;
  // Writes what was taken up to `until` (perf's clock), in the order of time.
  void WriteUntil(uint64_t until, recording::SampleWriter& writer);
  void RandomizePeriods();
  // Adds a sample, with its stack, to the chunk that is written next.
  void AddToChunk(const PendingSample& pending, recording::SampleWriter& writer);
  // Forgets what belongs to samples that were written.
  void DropWritten();
  [[nodiscard]] size_t RingPages() const;
  [[nodiscard]] bool WithStacks() const { return request_.call_chains && request_.stack_bytes > 0; }
  [[nodiscard]] bool WithBranches() const {
    return request_.call_chains && request_.branch_records;
  }

  PerfRequest request_;
  std::unique_ptr<PerfCalls> calls_;
  std::function<std::vector<RunningProcess>()> running_;
  std::shared_ptr<PerfMapWatch> perf_maps_;
  std::vector<std::string> notes_;
  std::vector<Event> events_;
  std::vector<Cpu> cpus_;
  absl::flat_hash_map<uint64_t, size_t> event_of_id_;
  size_t online_cpus_ = 1;  // when it was opened
  std::string vpmu_;        // mode of Xen's vPMU
  PerfClock clock_;
  std::vector<TscRange> marks_;        // TSC ranges of this drain's marks
  std::vector<uint64_t> marks_found_;  // times of this drain's marks, by perf's clock
  std::vector<PendingSample> pending_samples_;
  std::vector<Address> callers_;
  std::vector<UserRegisters> registers_;
  std::vector<std::byte> stacks_;
  std::vector<PendingProcess> pending_processes_;
  // Numbers, from 1 on, of mapped files whose build-ids are not known, by path and inode: the
  // linker made none, or its page was not in memory when the file was mapped.
  absl::flat_hash_map<std::pair<std::string, uint64_t>, uint32_t> files_without_id_;
  StackedChunk chunk_;                          // samples of request_.domain
  recording::TimedChunk domain_unknown_chunk_;  // a member only to reuse its memory
  uint32_t most_branches_ = 0;                  // branches that the processor records; 0: not known
  uint64_t branch_chains_ = 0;                  // call chains by branch records
  uint64_t full_branches_ = 0;                  // those of them whose records were all in use
  recording::ProcessChunk process_chunk_;
  recording::ProcessChunk running_chunk_;  // processes at the start, until they are written
  TscRange sampled_;
  std::mt19937_64 random_;
  bool prepared_ = false;  // PrepareStart was called
  DrainTimer drain_timer_;
  std::chrono::steady_clock::time_point next_randomization_;
  std::chrono::steady_clock::time_point next_cpu_poll_;  // time of the next PollCpus
  std::set<uint32_t> refused_;  // CPUs that came online and cannot be sampled
  std::vector<std::string> final_notes_;
};

}  // namespace xenoscope::sampler
