// The scheduler, interrupt and cgroup events of the Linux that runs this program, by its own
// tracing (ftrace), and what that Linux says that its CPUs did (/proc/stat). It takes no samples:
// its file has the pages of the kernel's trace buffers as they were, from which guests/ learns
// which thread ran when.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "recording/sample_writer.h"
#include "sampler/drain_timer.h"
#include "sampler/ftrace/trace_instance.h"
#include "sampler/running_processes.h"
#include "sampler/source.h"
#include "sampler/xen/behalf.h"

namespace xenoscope::sampler {

struct FtraceRequest {
  static constexpr std::chrono::nanoseconds kUsualInterval = std::chrono::milliseconds(100);

  DomainId domain = kDom0;    // domain that this Linux is
  uint32_t buffer_kb = 4096;  // size of each CPU's buffer
  std::chrono::nanoseconds drain_interval = kUsualInterval;
  BehalfOf behalf_of{};
  // Events beside those of threads (sampler/ftrace/event_list.h), and whether the owner of this
  // Linux lets them be recorded.
  std::vector<std::string> events{};
  // Functions that are traced (sampler/ftrace/function_patterns.h).
  std::vector<std::string> functions{};
  bool may_have_events = true;  // and functions
  // Whether events are read at each drain, though their page is not full: of a Linux that is to
  // shut down, what was not read is lost.
  bool reads_at_once = false;
  bool reads_cpu_times = true;  // whether what this Linux says of its CPUs is recorded, too
};

// Adds the threads that exist when recording begins, and their processes' cgroups.
void AddThreads(std::span<const RunningThread> threads, recording::ProcessChunk& chunk);
// Adds the domains on whose behalf the threads' processes work, as it is at `when`.
void AddBehalf(std::span<const RunningThread> threads, const BehalfOf& behalf_of, Tsc when,
               recording::ProcessChunk& chunk);

class FtraceSource final : public Source {
 public:
  static constexpr const char* kName = "ftrace";
  static constexpr const char* kInstance = "xenoscope";

  // `read_tsc` returns the TSC, `running` the threads that exist when sampling starts. Errors:
  // FailedPrecondition: tracefs is not mounted; those of CheckEventList, CheckFunctionPatterns and
  // TraceInstance. PrepareStart: NotFound: this kernel lacks sched_switch or sched_waking. Other
  // events are left out where it lacks them; those of the request, and functions, are noted.
  static absl::StatusOr<std::unique_ptr<FtraceSource>> Open(
      const FtraceRequest& request, std::function<Tsc()> read_tsc,
      std::function<std::vector<RunningThread>()> running);
  FtraceSource(const FtraceSource&) = delete;
  FtraceSource& operator=(const FtraceSource&) = delete;
  ~FtraceSource() override;

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override { return {}; }
  [[nodiscard]] recording::Role RoleOf(DomainId /*domain*/) const override {
    return recording::Role::kNone;
  }
  [[nodiscard]] std::vector<std::string> Notes() const override { return notes_; }
  // Turns the events on, for each of which Linux waits until all CPUs have seen it; none is
  // recorded before Start.
  absl::Status PrepareStart() override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override { return timer_.due(); }
  // Pages for which the writer has no room stay in the kernel's buffers, which overwrite the oldest
  // and count their events as lost.
  absl::Status Collect(recording::SampleWriter& writer) override;
  [[nodiscard]] bool HasMore() const override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return {}; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override { return {}; }
  [[nodiscard]] std::vector<recording::KernelTraceInfo> KernelTraces() const override;

 private:
  struct Cpu {
    uint32_t number = 0;
    File pages;
    Tsc read_before{};  // before the last read
    std::chrono::steady_clock::time_point last_read{};
    bool has_more = false;  // the last read ended for want of room
    TraceCounts counts{};
  };

  FtraceSource(const FtraceRequest& request, TraceInstance instance, std::function<Tsc()> read_tsc,
               std::function<std::vector<RunningThread>()> running)
      : request_(request),
        instance_(std::move(instance)),
        read_tsc_(std::move(read_tsc)),
        running_(std::move(running)),
        timer_(request.drain_interval) {}

  // Leaves out the events of the request that are not to be had, and notes why.
  void ChooseEvents();
  // Gets ready to trace the functions of the request, as far as they are to be had, and notes what
  // is not.
  absl::Status ChooseFunctions();
  absl::Status EnableEvents();
  // Writes the threads that exist.
  void WriteRunning(recording::SampleWriter& writer);
  // Writes on whose behalf processes work that have begun since.
  void WriteBehalf(recording::SampleWriter& writer);
  // Returns what /proc/stat says now; nothing if that is not wanted.
  [[nodiscard]] std::vector<recording::CpuTimesEntry> CpuTimes() const;
  void WriteCpuTimes(std::span<const recording::CpuTimesEntry> cpus,
                     recording::SampleWriter& writer) const;
  // Reads the pages if they fill half of the buffer, with `all` any, as far as the writer has room.
  // Returns their part of the buffer, in [0, 1].
  absl::StatusOr<double> Read(Cpu& cpu, bool all, recording::SampleWriter& writer);
  absl::Status ReadAll(bool all, recording::SampleWriter& writer, double& fill);
  // Reads all that is left after tracing was turned off, as far as the writer has room.
  absl::Status ReadRest(recording::SampleWriter& writer);

  FtraceRequest request_;
  std::optional<TraceInstance> instance_;
  std::function<Tsc()> read_tsc_;
  std::function<std::vector<RunningThread>()> running_;
  std::vector<std::string> notes_;
  std::vector<Cpu> cpus_;
  size_t first_cpu_ = 0;  // to be read first the next time
  bool prepared_ = false;
  bool stopped_ = false;
  std::string formats_;                                    // until they are written
  std::vector<RunningThread> threads_;                     // until they are written
  std::vector<recording::CpuTimesEntry> first_cpu_times_;  // until they are written
  std::chrono::steady_clock::time_point cpu_times_due_{};
  std::vector<std::byte> pages_;  // a member only to reuse its memory
  DrainTimer timer_;
};

}  // namespace xenoscope::sampler
