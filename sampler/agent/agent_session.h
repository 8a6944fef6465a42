// dom0's half of a recording with one guest's agent. Everything that comes from the agent is what
// a stranger says: it can cost its own samples, never the recording. It can neither hang nor flood
// it: every wait has one deadline that nothing it sends moves, and the user can end each; every
// length and the whole have a limit in bytes.
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
#include "sampler/agent/agent_link.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/channel.h"
#include "sampler/agent/guest_clock.h"

namespace xenoscope::sampler::agent {

// Times are from the question on, whatever comes meanwhile.
struct Limits {
  uint64_t bytes = uint64_t{1} << 30;       // in all, of one recording
  size_t pending_bytes = size_t{16} << 20;  // of samples between two answers about the clock
  size_t file_bytes = size_t{64} << 20;     // of a file
  std::chrono::milliseconds hello{1000};    // to answer at all
  std::chrono::milliseconds ready{10000};   // from the first word until it is ready, in all
  std::chrono::milliseconds answer{10000};  // to take part, and to stop with its accounts
  std::chrono::milliseconds late{2000};     // without an answer while it samples: it is late then
  std::chrono::milliseconds file{30000};    // for a file
  std::chrono::milliseconds files{60000};   // for all its files
  std::chrono::milliseconds ping_interval{200};
  int first_pings = 16;
};

// What a session asks of the host beside its channel.
struct Host {
  uint64_t tsc_hz = 0;  // of its TSC; 0: not known
  std::function<Tsc()> read_tsc;
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  // Whether the user wants waits to end at once. It is asked several times a second during each.
  std::function<bool()> is_interrupted = [] { return false; };
};

// What was refused, and why.
struct Refused {
  uint64_t damaged = 0;    // in chunks that are not whole, or of no mode, event or vCPU
  uint64_t processes = 0;  // what it said of them and what is not as it should be
  uint64_t mistimed = 0;   // samples not taken while it sampled, by its clock
};

// How often the agent took longer than Limits::late to answer while it sampled.
struct Lateness {
  uint64_t times = 0;
  std::chrono::nanoseconds longest{0};  // up to now, where it has not answered yet
  bool operator==(const Lateness&) const = default;
};

class Session {
 public:
  // Called with what comes: of the session's domain, in the host's time. What it points to goes
  // when the call returns.
  struct Sink {
    std::function<void(const recording::Sample&)> sample;
    std::function<void(const recording::ProcessRecord&)> process;
  };

  // Greets the agent behind `channel` and compares the clocks. Errors: no agent answers, or it
  // speaks another version.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const recording::DomainInfo& domain,
                                                       std::unique_ptr<Channel> channel, Host host,
                                                       const Limits& limits);

  // Makes it ready. Errors: it cannot sample so.
  absl::Status Prepare(const agent::Prepare& how);
  // Lets it take part as an active domain of xenoprof, which Xen has just listed; true: it has to
  // be listed and asked again. Errors: it does not take part.
  absl::StatusOr<bool> Enlist();
  // What it samples with, once it is ready.
  GuestSource source() const { return source_; }
  // Of the agent, once it is ready: what its samples count.
  const std::vector<recording::EventInfo>& events() const { return events_; }

  // Sampling begins; what comes goes to `sink`.
  void Start(Sink sink);
  // Does what there is to do, without waiting. After an error (see status) nothing. An agent that
  // does not answer is late, and its samples come when it does.
  void Step();
  // Ends it for a reason that the agent cannot tell. Takes what has come until now.
  void GiveUp(absl::Status why);
  // Ends sampling and takes what the agent still has; no longer than the time limit for an answer.
  // Samples that were taken after this call began are not of the recording.
  void Stop();
  // The next part of the guest's file, once sampling has stopped: the first call asks for the file,
  // and after the last part, or an error, another one can be asked for. Only a last part is empty.
  // So nothing holds the whole of a file. Errors: it cannot be read there, it is too long, the
  // agent is too slow. The session ends with an error of the latter two.
  absl::StatusOr<FilePart> Fetch(FileKind kind);
  void Bye();

  const recording::DomainInfo& domain() const { return domain_; }
  const Hello& hello() const { return hello_; }
  // What ended the session before its time.
  const absl::Status& status() const { return ended_; }
  // What the agent said it cannot do, though the session went on.
  const std::vector<std::string>& agent_errors() const { return agent_errors_; }
  // The accounts of each vCPU: the agent's own when it gave them, less what was refused here.
  std::vector<recording::StreamInfo> Streams() const;
  const Refused& refused() const { return refused_; }
  Lateness lateness() const;
  const GuestClock& clock() const { return clock_; }
  // All that it sampled before this instant has been handed on.
  Tsc Delivered() const { return delivered_; }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  Session(recording::DomainInfo domain, std::unique_ptr<Channel> channel, Host host,
          const Limits& limits);

  absl::Status Greet();
  absl::Status AwaitHello();
  absl::Status CompareClocks();
  absl::Status Handle(AnyMessage message);
  absl::Status TakeHello(const Hello& hello);
  absl::Status TakePrepared(const Prepared& prepared);
  void BeginFile(FileKind kind);
  absl::Status TakeFilePart(const FilePart& part);
  absl::Status TakeAccount(const Account& account);
  absl::Status CheckLimits() const;
  void Ping();
  absl::Status TakePong(const Pong& pong);
  void Forward();
  void ForwardSamples(Bytes file);
  void ForwardProcesses(Bytes file);
  bool IsValid(recording::Sample& sample);
  // Steps until `done`, an error, `until`, or the user's wish to end; whether it is done.
  bool StepUntil(const std::function<bool()>& done, Instant until);
  // Why it is not done.
  absl::Status TimeoutError(std::string_view what, std::chrono::milliseconds limit) const;

  recording::DomainInfo domain_;
  std::unique_ptr<Channel> channel_;
  Link link_;
  Host host_;
  Limits limits_;
  Instant ready_until_;
  std::optional<Hello> greeting_;  // as it came
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
  Lateness lateness_;  // of answers that came

  std::optional<Sink> sink_;        // from Start on
  std::vector<std::byte> pending_;  // chunks that wait for an answer about the clock
  Tsc started_;
  Instant sampling_since_;
  std::optional<Tsc> stopped_;  // when it was told to
  Tsc delivered_;
  struct ReceivedCounts {
    uint64_t received = 0;
    uint64_t callers = 0;
    recording::BufferCounters kept;
  };
  std::map<VcpuId, ReceivedCounts> received_counts_;
  Refused refused_;
  size_t max_events_ = kMaxEvents;  // that it was asked for
  bool prepared_ = false;
  GuestSource source_ = GuestSource::kPerf;
  bool enlisting_ = false;        // it was asked to
  std::optional<bool> enlisted_;  // and answered
  std::string account_json_;
  std::optional<std::vector<recording::StreamInfo>> account_;

  struct FileTransfer {
    FileKind kind;
    Instant until;
    size_t received = 0;               // bytes
    std::vector<std::byte> content{};  // that was not handed on yet
    bool done = false;
    bool failed = false;
  };
  std::optional<FileTransfer> file_transfer_;
  std::optional<Instant> files_until_;  // from the first file on
};

}  // namespace xenoscope::sampler::agent
