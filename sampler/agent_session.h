// dom0's half of a recording with one guest's agent. Everything that comes from the agent is what
// a stranger says: it can cost its own samples, never the recording. It can neither hang nor flood
// it: every answer has a time limit, every length and the whole a limit in bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/process_reader.h"
#include "recording/sample.h"
#include "sampler/agent_link.h"
#include "sampler/agent_messages.h"
#include "sampler/channel.h"
#include "sampler/guest_clock.h"

namespace xenoscope::sampler::agent {

struct Limits {
  uint64_t bytes = uint64_t{1} << 30;       // in all, of one recording
  size_t pending_bytes = size_t{16} << 20;  // of samples between two answers about the clock
  size_t file_bytes = size_t{64} << 20;     // of a file
  std::chrono::milliseconds hello{1000};    // to answer at all
  std::chrono::milliseconds answer{10000};  // to answer anything later
  std::chrono::milliseconds ping_interval{200};
  int first_pings = 16;
};

// What was refused, and why.
struct Refused {
  uint64_t damaged = 0;    // in chunks that are not whole, or of no mode, event or vCPU
  uint64_t processes = 0;  // what it said of them and what is not as it should be
  uint64_t mistimed = 0;   // samples not taken while it sampled, by its clock
};

class Session {
 public:
  // Called with what comes: of the session's domain, in the host's time. What it points to goes
  // when the call returns.
  struct Sink {
    std::function<void(const recording::Sample&)> sample;
    std::function<void(const recording::ProcessRecord&)> process;
  };

  // Greets the agent behind `channel` and compares the clocks. `host_hz` is the rate of the host's
  // TSC, which `read_tsc` reads. Errors: no agent answers, or it speaks another version.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const recording::DomainInfo& domain,
                                                       std::unique_ptr<Channel> channel,
                                                       uint64_t host_hz,
                                                       std::function<Tsc()> read_tsc,
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
  // Does what there is to do, without waiting. After an error (see status) nothing.
  void Step();
  // Ends it for a reason that the agent cannot tell. Takes what has come until now.
  void GiveUp(absl::Status why);
  // Ends sampling and takes what the agent still has; no longer than the time limit for an answer.
  void Stop();
  // The file of the guest, once sampling has stopped. Errors: it cannot be read there, it is too
  // long, the agent is silent.
  absl::StatusOr<std::vector<std::byte>> Fetch(FileKind kind);
  void Bye();

  const recording::DomainInfo& domain() const { return domain_; }
  const Hello& hello() const { return hello_; }
  // What ended the session before its time.
  const absl::Status& status() const { return ended_; }
  // What the agent said it cannot do, though the session went on.
  const std::vector<std::string>& complaints() const { return complaints_; }
  // The accounts of each vCPU: the agent's own when it gave them, less what was refused here.
  std::vector<recording::StreamInfo> Streams() const;
  const Refused& refused() const { return refused_; }
  const GuestClock& clock() const { return clock_; }
  // All that it sampled before this instant has been handed on.
  Tsc Delivered() const { return delivered_; }

 private:
  Session(recording::DomainInfo domain, std::unique_ptr<Channel> channel,
          std::function<Tsc()> read_tsc, const Limits& limits);

  absl::Status Greet(uint64_t host_hz);
  absl::Status Handle(AnyMessage message);
  absl::Status TakeAccount(const Account& account);
  absl::Status CheckLimits() const;
  void Ping();
  absl::Status TakePong(const Pong& pong);
  void PassOn();
  void PassSamples(Bytes file);
  void PassProcesses(Bytes file);
  bool Acceptable(recording::Sample& sample);
  // Steps until `done`, an error, or the time limit for an answer; whether it is done.
  bool StepUntil(const std::function<bool()>& done);

  recording::DomainInfo domain_;
  std::unique_ptr<Channel> channel_;
  Link link_;
  std::function<Tsc()> read_tsc_;
  Limits limits_;
  Hello hello_;
  GuestClock clock_{false};
  absl::Status ended_;
  std::vector<std::string> complaints_;
  std::vector<recording::EventInfo> events_;

  struct Asked {
    uint64_t number;
    Tsc before;
    std::chrono::steady_clock::time_point at;
  };
  std::optional<Asked> asked_;
  std::chrono::steady_clock::time_point heard_;  // when something came last
  uint64_t pings_ = 0;
  std::chrono::steady_clock::time_point next_ping_;

  std::optional<Sink> sink_;        // from Start on
  std::vector<std::byte> pending_;  // chunks that wait for an answer about the clock
  Tsc started_;
  Tsc delivered_;
  struct Taken {
    uint64_t received = 0;
    recording::BufferCounters kept;
  };
  std::map<VcpuId, Taken> taken_;
  Refused refused_;
  bool prepared_ = false;
  GuestSource source_ = GuestSource::kPerf;
  bool enlisting_ = false;        // it was asked to
  std::optional<bool> enlisted_;  // and answered
  std::string account_text_;
  std::optional<std::vector<recording::StreamInfo>> account_;

  struct Fetching {
    FileKind kind;
    std::vector<std::byte> content;
    bool done = false;
    bool failed = false;
  };
  std::optional<Fetching> fetching_;
};

}  // namespace xenoscope::sampler::agent
