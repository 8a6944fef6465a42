// The source of one active domain in `record`: it drives an AgentSource in a process without
// privileges. The guest's bytes go there unread, and what comes back is checked
// (sampler/agent/agent_calls.h). A guest that takes that process over can make up samples of its
// own domain, which it can do anyway, and nothing else.
//
//   guest ==channel==> AgentRelay ==socket==> [ AgentSource ]   in the sandbox
//                      AgentProxy <--calls--> [ AgentWorker ]
//
// If that process ends, hangs or replies nonsense, the guest's samples from then on are lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/agent/agent_calls.h"
#include "sampler/agent/agent_relay.h"
#include "sampler/agent/agent_source.h"
#include "sampler/agent/agent_worker.h"
#include "sampler/sandbox.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

class AgentProxy final : public Source {
 public:
  // The function that runs in the sandbox: ServeAgentCalls, except in tests.
  using Worker = std::function<void(int control, int data, const recording::DomainInfo& domain,
                                    const AgentRequest& request, const agent::Host& host)>;

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
  [[nodiscard]] const recording::DomainInfo& domain() const { return domain_; }

  [[nodiscard]] recording::SourceInfo Info() const override { return AgentSourceInfo(domain_.id); }
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
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override {
    return state_.streams;
  }
  [[nodiscard]] std::vector<std::string> FinalNotes() const override;

 private:
  // Connects and starts the sandbox, without a call yet.
  static absl::StatusOr<std::unique_ptr<AgentProxy>> Begin(const recording::DomainInfo& domain,
                                                           const AgentRequest& request,
                                                           const AgentSource::Connect& connect,
                                                           const agent::Host& host,
                                                           const Worker& worker);

  AgentProxy(recording::DomainInfo domain, AgentRequest request, agent::Host host, Sandbox sandbox,
             std::unique_ptr<Channel> guest, int data);

  // Makes a call and returns its reply. `time` is how long the call itself may take. An error is
  // one of this process's side: then the other process is ended, and all later calls fail.
  absl::StatusOr<AgentReply> Call(const AgentCallMessage& message, std::chrono::milliseconds time);
  absl::StatusOr<AgentReply> AwaitReply(std::chrono::milliseconds time);
  // Returns a whole reply, if one has come. Errors: it is too long or damaged; the process is gone.
  absl::StatusOr<std::optional<AgentReply>> TakeReply();
  [[nodiscard]] bool Send(const AgentCallMessage& message) const;
  absl::Status GiveUp(const absl::Status& why);
  // Fetches a part of a file, as AgentSource::Fetch does.
  absl::StatusOr<agent::FilePart> Fetch(recording::SymbolFile::Kind kind);
  // Ends both connections, after what is on its way to the guest.
  void Disconnect();
  // Hands on the samples of a reply, if they are of its domain and within the limit of bytes.
  void Take(const absl::StatusOr<AgentReply>& reply, recording::SampleWriter& writer);
  [[nodiscard]] std::string Name() const;

  recording::DomainInfo domain_;
  AgentRequest request_;
  agent::Host host_;
  std::optional<Sandbox> sandbox_;
  std::optional<AgentRelay> relay_;
  bool filtered_;
  std::vector<std::byte> received_;  // bytes of the reply that is being received
  absl::Status failed_;
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
