// dom0's side of a recording with one guest's agent. Nothing that comes from the agent is trusted:
// it can spoil its own samples, never the recording. It can neither block nor flood the recorder:
// every wait has one deadline that no message moves, and the user can end each wait; every length,
// and the sum of all, has a limit in bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/process_reader.h"
#include "recording/sample.h"
#include "recording/sample_writer.h"
#include "sampler/agent/agent_link.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/channel.h"
#include "sampler/agent/guest_clock.h"
#include "sampler/agent/received_stacks.h"

namespace xenoscope::sampler::agent {

// The limits of a session. Times count from the question, whatever comes meanwhile.
struct Limits {
  uint64_t bytes = uint64_t{1} << 30;  // all bytes of one recording
  // Bytes of samples between two answers about the clock.
  size_t pending_bytes = kMaxBytesBetweenAnswers;
  // Bytes of stacks between two answers, once they are decompressed; more are left out.
  uint64_t pending_stack_bytes = uint64_t{64} << 20;
  size_t file_bytes = size_t{64} << 20;   // bytes of a file
  std::chrono::milliseconds hello{1000};  // time until the first answer
  // Time from the first message until the agent is ready, in all.
  std::chrono::milliseconds ready{10000};
  // Time to take part; once it is told to stop, the longest time in which it may send nothing.
  std::chrono::milliseconds answer{10000};
  // Time to stop, with the samples that wait in a guest that had little CPU time, and its accounts.
  std::chrono::milliseconds stop{60000};
  // Time for an answer during sampling, after which the agent is late.
  std::chrono::milliseconds late{2000};
  std::chrono::milliseconds file{30000};   // time for one file
  std::chrono::milliseconds files{60000};  // time for all files
  // Additional time for what the process that reads for the agent does of itself
  // (sampler/agent/agent_caller.h).
  std::chrono::milliseconds reply{10'000};
  // Time to take what is shared, and to keep it, in a guest that has little CPU time.
  std::chrono::milliseconds share{30000};
  std::chrono::milliseconds ping_interval{200};
  int first_pings = 16;
};

// The services of the host that a session needs beside its channel.
struct Host {
  uint64_t tsc_hz = 0;  // rate of the host's TSC in Hz; 0: not known
  std::function<Tsc()> read_tsc;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  // Whether the user wants waits to end at once. It is called several times a second during each
  // wait.
  std::function<bool()> is_interrupted = [] { return false; };
};

// Counts of what was refused.
struct Refused {
  // Samples in chunks that are not whole, or with an unknown mode, event or vCPU.
  uint64_t damaged = 0;
  uint64_t processes = 0;  // records of processes that are not valid
  uint64_t pages = 0;      // chunks of a kernel's trace that were not asked for, or of no vCPU
  uint64_t cpu_times = 0;  // what its kernel says of vCPUs that it has not, or that is damaged
  uint64_t stacks = 0;     // stacks that cannot be read, or are larger than what was asked for
  uint64_t mistimed = 0;   // samples taken outside of the sampling, by the agent's clock
};

// How often the agent took longer than Limits::late to answer during sampling.
struct Lateness {
  uint64_t times = 0;
  std::chrono::nanoseconds longest{0};  // longest time for an answer, the pending one included
  bool operator==(const Lateness&) const = default;
};

// A session with one agent.
class Session {
 public:
  // Called with what comes, of the session's domain and in the host's time. What it points to is
  // valid until the call returns.
  struct Sink {
    std::function<void(const recording::Sample&)> sample;
    std::function<void(const recording::ProcessRecord&)> process;
    // Called in place of `sample` where the agent sends stacks, for a sample of a thread with a
    // user mode; null: its stack is not there. May be empty if no stacks were asked for.
    std::function<void(const recording::Sample&, const recording::UserStack*)> with_stack{};
    // Called if threads were asked for, with what CPUs' trace buffers of the guest's kernel had,
    // and with the text of its formats; nothing was looked at in either. Times are the host's:
    // of the last two answers between which the pages came.
    std::function<void(VcpuId, const recording::DrainTimes&, uint32_t page_size, Bytes)>
        trace_pages{};
    std::function<void(std::string_view)> trace_formats{};
    // Called if threads were asked for, with what the guest's kernel says that its vCPUs did.
    std::function<void(const recording::DrainTimes&, std::span<const recording::CpuTimesEntry>)>
        cpu_times{};
    std::function<void(const recording::ClockAnswer&)> clock_answer{};
    // Called with what the guest's JIT compilers have written since the last call. May be empty.
    std::function<void(std::string_view)> perf_maps{};
  };

  // Greets the agent behind `channel` and compares the clocks. Errors: no agent answers, or it
  // speaks another version.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const recording::DomainInfo& domain,
                                                       std::unique_ptr<Channel> channel, Host host,
                                                       const Limits& limits);

  // Lets the agent get ready. An agent that does not know stacks or branch records, or may not send
  // stacks, follows frame pointers instead. Errors: it cannot sample as `how` says.
  absl::Status Prepare(const agent::Prepare& how);
  // Lets the domain take part in xenoprof as an active domain, which Xen has just listed. True: it
  // has to be listed and asked again. Errors: it does not take part.
  absl::StatusOr<bool> Enlist();
  // Returns what the agent samples with, once it is ready.
  [[nodiscard]] GuestSource source() const { return source_; }
  // Returns the limit of the pieces of stacks that it sends, once it is ready; 0: it sends none.
  [[nodiscard]] uint32_t stack_bytes() const { return stack_bytes_; }
  // Whether the agent sends its kernel's events of threads, once it is ready.
  [[nodiscard]] bool threads() const { return threads_; }
  // Returns which events of its kernel the agent does not send, and why, once it is ready.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // Returns the accounts of its kernel's trace, by the guest's own counts.
  [[nodiscard]] const std::vector<recording::KernelTraceInfo>& kernel_traces() const {
    return kernel_traces_;
  }
  // Returns the number of pieces that were left out, by the agent and here.
  [[nodiscard]] uint64_t stacks_left_out() const;
  // Returns the events that the agent's samples count, once it is ready.
  [[nodiscard]] const std::vector<recording::EventInfo>& events() const { return events_; }

  // Begins sampling; samples go to `sink`.
  void Start(Sink sink);
  // Handles what has come, without waiting; nothing after an error (see status). If an agent does
  // not answer, it is late, and its samples come when it answers.
  void Step();
  // Ends the session for a reason that the agent cannot give. Takes what has come until now, and
  // closes the channel: pages of a domain that is destroyed keep it from being removed.
  void GiveUp(absl::Status why);
  // Ends sampling and takes what the agent still has, within the time limit for an answer. Samples
  // taken after this call began do not belong to the recording.
  void Stop();
  // Returns the next part of a file of the guest, after sampling. The first call asks for the file;
  // after its last part, or an error, another file can be asked for. Only a last part is empty. So
  // no process holds a whole file. Errors: the guest cannot read it, it is too long, or the agent
  // is too slow; the latter two end the session.
  absl::StatusOr<FilePart> Fetch(FileKind kind);
  // Lets the agent count events, or read what it counts (agent::Count), and returns all counts.
  // Errors: Unimplemented: it cannot; else it ends the session: it does not answer in time, or its
  // counts are of events or vCPUs that there are not.
  absl::StatusOr<Counts> Count(const agent::Count& what);
  // Sends the guest what its owner may see of a recording, and waits until its agent has kept it.
  // Errors: Unimplemented: the agent is too old; FailedPrecondition: it does not keep it, for the
  // reason that it gives; else it ends the session: the agent does not take it in time.
  absl::Status Share(Bytes bytes);
  void Bye();

  [[nodiscard]] const recording::DomainInfo& domain() const { return domain_; }
  [[nodiscard]] const Hello& hello() const { return hello_; }
  // Returns the error that ended the session early.
  [[nodiscard]] const absl::Status& status() const { return ended_; }
  // Returns what the agent could not do, though the session went on.
  [[nodiscard]] const std::vector<std::string>& agent_errors() const { return agent_errors_; }
  // Returns the accounts of each vCPU: the agent's own if it sent them, less what was refused here.
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const;
  [[nodiscard]] Refused refused() const;
  [[nodiscard]] Lateness lateness() const;
  // Returns the number of bytes that have come.
  [[nodiscard]] uint64_t received() const { return link_.received(); }
  [[nodiscard]] const GuestClock& clock() const { return clock_; }
  // Returns the answers about its clock that came before sampling.
  [[nodiscard]] const std::vector<recording::ClockAnswer>& answers() const { return answers_; }
  // Returns the instant before which all samples have been handed on.
  [[nodiscard]] Tsc Delivered() const { return delivered_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  Session(recording::DomainInfo domain, std::unique_ptr<Channel> channel, Host host,
          const Limits& limits);

  absl::Status Greet();
  absl::Status AwaitHello();
  absl::Status CompareClocks();
  absl::Status Handle(AnyMessage message);
  absl::Status TakeHello(const Hello& hello);
  // Takes the last complaint of the agent, if there are more than the `known` ones: it is the
  // answer to what it was asked for.
  std::optional<std::string> TakeRefusal(size_t known);
  absl::Status TakePrepared(const Prepared& prepared);
  void BeginFile(FileKind kind);
  absl::Status TakeFilePart(const FilePart& part);
  absl::Status TakeAccount(const Account& account);
  void TakeKernelTraces(const std::vector<recording::KernelTraceInfo>& traces);
  absl::Status TakeCounts(const Counts& part);
  absl::Status CheckLimits() const;
  void Ping();
  absl::Status TakePong(const Pong& pong);
  void Forward();
  void ForwardSamples(Bytes file);
  void ForwardProcesses(Bytes file);
  void ForwardCpuTimes(const recording::Chunk& chunk, const recording::DrainTimes& times);
  void ForwardTraces(Bytes file);
  bool IsValid(recording::Sample& sample);
  // Steps until `done`, an error, `until`, or the user's wish to end. Returns whether it is done.
  bool StepUntil(const std::function<bool()>& done, Instant until);
  // The same, and ends early if nothing came for the time of an answer.
  bool StepWhileItSends(const std::function<bool()>& done, Instant until);
  // Returns why it is not done.
  absl::Status TimeoutError(std::string_view what, std::chrono::milliseconds limit) const;

  recording::DomainInfo domain_;
  std::unique_ptr<Channel> channel_;
  Link link_;
  Host host_;
  Limits limits_;
  Instant ready_until_;
  std::optional<Hello> greeting_;  // the agent's hello, unchanged
  Hello hello_;
  GuestClock clock_{false};
  absl::Status ended_;
  std::vector<std::string> agent_errors_;
  std::vector<recording::EventInfo> events_;

  struct PendingPing {
    uint64_t number;
    Tsc before;
    Instant at;
  };
  std::optional<PendingPing> pending_ping_;
  uint64_t pings_ = 0;
  Instant next_ping_;
  Lateness lateness_;  // lateness of the answers that have come

  std::optional<Sink> sink_;        // set by Start
  std::vector<std::byte> pending_;  // chunks that wait for an answer about the clock
  Tsc started_;
  Instant sampling_since_;
  std::optional<Tsc> stopped_;  // time at which the agent was told to stop
  Tsc delivered_;
  struct ReceivedCounts {
    uint64_t received = 0;
    uint64_t callers = 0;
    recording::BufferCounters kept;
  };
  std::map<VcpuId, ReceivedCounts> received_counts_;
  Refused refused_;
  bool threads_ = false;
  std::vector<std::string> notes_;
  bool asked_threads_ = false;
  std::vector<recording::ClockAnswer> answers_;  // those until sampling started
  std::vector<recording::KernelTraceInfo> kernel_traces_;
  uint32_t asked_stack_bytes_ = 0;
  uint32_t stack_bytes_ = 0;
  std::optional<ReceivedStacks> stacks_;  // set if the agent sends stacks
  uint64_t left_out_by_agent_ = 0;
  size_t max_events_ = kMaxEvents;  // number of events that the agent was asked for
  bool prepared_ = false;
  GuestSource source_ = GuestSource::kPerf;
  bool enlisting_ = false;        // whether the agent was asked to take part
  std::optional<bool> enlisted_;  // the agent's answer
  std::optional<Counts> counts_;  // the parts that have come, once the agent was asked
  std::optional<bool> shared_;    // whether the agent has kept what is shared, once it was sent
  std::string account_json_;
  std::optional<std::vector<recording::StreamInfo>> account_;

  struct FileTransfer {
    FileKind kind;
    Instant until;
    size_t received = 0;               // bytes
    std::vector<std::byte> content{};  // the part of the file that was not handed on yet
    bool done = false;
    bool failed = false;
  };
  std::optional<FileTransfer> file_transfer_;
  std::optional<Instant> files_until_;  // deadline for all files, from the first one on
};

}  // namespace xenoscope::sampler::agent
