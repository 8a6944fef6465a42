// The source of one active domain in `record`: it drives an AgentSource in a process without
// privileges (sampler/agent/agent_caller.h).
//
// If that process ends, hangs or replies nonsense, the guest's samples from then on are lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/agent/agent_caller.h"
#include "sampler/agent/agent_calls.h"
#include "sampler/agent/agent_source.h"
#include "sampler/agent/agent_worker.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

class AgentProxy final : public Source {
 public:
  using Worker = AgentCaller::Worker;

  // Opens as AgentSource::Open does. To be called before any other thread runs. Errors also: there
  // is no sandbox.
  static absl::StatusOr<std::unique_ptr<AgentProxy>> Open(const recording::DomainInfo& domain,
                                                          const AgentRequest& request,
                                                          const AgentSource::Connect& connect,
                                                          const agent::Host& host,
                                                          const Worker& worker = ServeAgentCalls);

  // Returns the name of the agent of `domain`, and asks it for nothing else. To be called before
  // any other thread runs. Errors: no agent answers in time, or there is no sandbox.
  static absl::StatusOr<std::string> Greet(const recording::DomainInfo& domain,
                                           const agent::Limits& limits,
                                           const AgentSource::Connect& connect,
                                           const agent::Host& host,
                                           const Worker& worker = ServeAgentCalls);

  // The functions below are as those of AgentSource.
  absl::Status NumberEvents(size_t first);
  [[nodiscard]] bool IsMember() const { return state_.is_member; }
  [[nodiscard]] const recording::DomainInfo& domain() const { return caller_->domain(); }

  [[nodiscard]] recording::SourceInfo Info() const override;
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override { return events_; }
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override;
  [[nodiscard]] std::vector<std::string> Notes() const override;
  [[nodiscard]] bool WaitsForGuest() const override { return true; }
  absl::StatusOr<bool> Enlist() override;
  absl::Status Start() override;
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override;
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  void OnDomainDestroyed(DomainId domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  [[nodiscard]] TscRange Sampled() const override { return sampled_; }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override;
  [[nodiscard]] std::vector<recording::KernelTraceInfo> KernelTraces() const override {
    return state_.kernel_traces;
  }
  [[nodiscard]] std::vector<std::string> FinalNotes() const override;

 private:
  explicit AgentProxy(std::unique_ptr<AgentCaller> caller);

  // Makes a call as AgentCaller does, and keeps the state after it.
  absl::StatusOr<AgentReply> Call(const AgentCallMessage& message, std::chrono::milliseconds time);
  // Fetches a part of a file, as AgentSource::Fetch does.
  absl::StatusOr<agent::FilePart> Fetch(recording::SymbolFile::Kind kind);
  // Hands on the samples of a reply, if they are of its domain and within the limit of bytes.
  void Take(const absl::StatusOr<AgentReply>& reply, recording::SampleWriter& writer);
  [[nodiscard]] std::string Name() const;

  std::unique_ptr<AgentCaller> caller_;
  AgentState state_;  // state after the last call
  std::vector<recording::EventInfo> events_;
  uint64_t received_counts_ = 0;  // bytes of samples
  struct FileTransfer {
    std::chrono::steady_clock::time_point until;
    size_t received = 0;  // bytes
  };
  std::optional<FileTransfer> file_transfer_;  // the file of which more parts follow
  TscRange sampled_;
};

}  // namespace xenoscope::sampler
