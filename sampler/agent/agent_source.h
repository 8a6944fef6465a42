// The source of one active domain: samples that the guest takes of itself. The guest runs an agent
// (`xenoscope agent`, sampler/agent/agent_server.h), which this class drives. Each active domain
// has its own source, thread and file of samples, so that none waits for another.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "recording/sample.h"
#include "recording/sample_writer.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/agent_session.h"
#include "sampler/agent/channel.h"
#include "sampler/perf/jit_and_vdso.h"
#include "sampler/source.h"
#include "sampler/stacked_chunk.h"

namespace xenoscope::sampler {

struct AgentRequest {
  agent::Prepare how;
  bool boot = false;  // whether the recording is to have the trace of the guest's boot
  agent::Limits limits;
};

// Returns the entry in recording.json of the source of a domain's agent.
recording::SourceInfo AgentSourceInfo(DomainId domain);

// A function that returns a guest's file part by part, as agent::Session::Fetch does.
using FetchPart = std::function<absl::StatusOr<agent::FilePart>(recording::SymbolFile::Kind)>;

// Adds to a recording the files of a guest that map its addresses to names, of those kinds that the
// user has not given; one part at a time is in memory. If a file cannot be had, addresses stay
// without names. Errors: the recording cannot be written.
absl::Status SaveAgentFiles(const recording::DomainInfo& domain, const FetchPart& fetch,
                            const recording::Writer& writer, recording::RecordingInfo& info);

// The source.
class AgentSource final : public Source {
 public:
  using Connect = std::function<absl::StatusOr<std::unique_ptr<Channel>>(DomainId)>;

  // Greets the agent of `domain` and lets it get ready. Errors: why it cannot be active.
  static absl::StatusOr<std::unique_ptr<AgentSource>> Open(const recording::DomainInfo& domain,
                                                           const AgentRequest& request,
                                                           const Connect& connect,
                                                           const agent::Host& host);

  // Gives the agent's events their numbers in the recording, before Start: from `first` on. An
  // active domain of xenoprof has no events of its own: it counts dom0's, the first ones. Errors
  // (ResourceExhausted): the recording has no numbers left.
  absl::Status NumberEvents(size_t first);

  // Returns whether the domain is an active one of dom0's xenoprof: then its events are dom0's, the
  // first of the recording, and it samples while dom0 does.
  [[nodiscard]] bool IsMember() const { return is_member_; }
  [[nodiscard]] const recording::DomainInfo& domain() const { return session_->domain(); }
  [[nodiscard]] const agent::Session& session() const { return *session_; }

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override;
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override;
  [[nodiscard]] std::vector<std::string> Notes() const override;
  [[nodiscard]] bool WaitsForGuest() const override { return true; }
  absl::StatusOr<bool> Enlist() override { return session_->Enlist(); }
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  void OnDomainDestroyed(DomainId domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  // Returns the next part of the guest's file, as agent::Session::Fetch does; empty at once: there
  // is no such file, the agent does not know this kind, or it was not asked for. The trace of the
  // boot ends with the answers about its clock. Of an agent that has gone: what JIT compilers had
  // written before, as far as it was sent.
  absl::StatusOr<agent::FilePart> Fetch(recording::SymbolFile::Kind kind);
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return sampled_; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override {
    return session_->Streams();
  }
  [[nodiscard]] std::vector<recording::KernelTraceInfo> KernelTraces() const override {
    return session_->kernel_traces();
  }
  [[nodiscard]] std::vector<std::string> FinalNotes() const override;

 private:
  struct PendingStack {
    UserRegisters registers{};
    std::vector<std::byte> bytes;
  };
  // A sample that waits for earlier ones that may still come. There are at most those between two
  // answers about the clock, which agent::Limits::pending_bytes bounds.
  struct PendingSample {
    recording::TimedEntry entry;
    std::vector<Address> callers;
    bool with_stack = false;  // whether its thread has a user mode, in a recording of stacks
    std::unique_ptr<PendingStack> stack{};  // null: it is not known
  };

  AgentSource(std::unique_ptr<agent::Session> session, agent::Host host, bool is_member,
              const AgentRequest& request);

  PendingSample& AddPending(const recording::Sample& sample);
  void AddPending(const recording::Sample& sample, const recording::UserStack* stack);
  void Step();
  void StopSession();
  // Writes the records of processes, and the samples taken before `until`, in the order of time.
  void Write(Tsc until, recording::SampleWriter& writer);
  [[nodiscard]] std::string Name() const;
  // Returns what the guest's JIT compilers wrote while the session lasted, all of it at once.
  agent::FilePart SentPerfMaps();

  std::unique_ptr<agent::Session> session_;
  agent::Host host_;
  bool is_member_;
  bool boot_;                     // the trace of its boot was asked for
  std::vector<uint8_t> numbers_;  // number in the recording of each of the session's events
  std::vector<PendingSample> pending_samples_;
  StackedChunk chunk_;                 // samples that are being written
  recording::ProcessChunk processes_;  // records of processes that are to be written
  // Chunks of the guest's kernel's trace and clock that are to be written.
  recording::SampleWriter traces_ = recording::SampleWriter::InMemory();
  std::vector<std::string> notes_;
  std::vector<std::string> missing_;  // files that could not be had, with the reasons
  // What the guest's JIT compilers wrote, as far as it was sent meanwhile.
  PerfMapText perf_maps_{kMaxPerfMapBytes};
  bool is_stopped_ = false;
  std::chrono::steady_clock::time_point due_;
  TscRange sampled_;
};

}  // namespace xenoscope::sampler
