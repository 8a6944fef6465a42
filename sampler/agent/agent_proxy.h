// The source of one active domain, as `record` sees it: an AgentSource in a process without
// privileges. What the guest sends goes there unread, and what comes back is checked
// (sampler/agent/agent_calls.h). A guest that takes that process over can make up samples of its
// own domain, which it could before, and nothing else.
//
//   guest ==channel==> AgentRelay ==socket==> [ AgentSource ]   in the sandbox
//                      AgentProxy <--calls--> [ AgentWorker ]
//
// A process that ends, hangs or says what cannot be costs what the guest sent from then on.
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
  // What runs in the sandbox: ServeAgentCalls, but for tests.
  using Worker = std::function<void(int control, int data, const recording::DomainInfo& domain,
                                    const AgentRequest& request, const agent::Host& host)>;

  // As AgentSource::Open. Before any other thread runs. Errors, too: there is no sandbox.
  static absl::StatusOr<std::unique_ptr<AgentProxy>> Open(const recording::DomainInfo& domain,
                                                          const AgentRequest& request,
                                                          const AgentSource::Connect& connect,
                                                          const agent::Host& host,
                                                          const Worker& worker = ServeAgentCalls);

  // What the agent of `domain` calls itself, and nothing else is asked of it. Before any other
  // thread runs. Errors: no agent answers in time, or there is no sandbox.
  static absl::StatusOr<std::string> Greet(const recording::DomainInfo& domain,
                                           const agent::Limits& limits,
                                           const AgentSource::Connect& connect,
                                           const agent::Host& host,
                                           const Worker& worker = ServeAgentCalls);

  // As those of AgentSource.
  absl::Status NumberEvents(std::vector<recording::EventInfo>& all, size_t first);
  bool IsMember() const { return state_.is_member; }
  const recording::DomainInfo& domain() const { return domain_; }

  recording::SourceInfo Info() const override { return AgentSourceInfo(domain_.id); }
  std::vector<recording::EventInfo> Events() const override { return events_; }
  recording::Role RoleOf(DomainId domain) const override;
  std::vector<std::string> Notes() const override;
  bool WaitsForGuest() const override { return true; }
  absl::StatusOr<bool> Enlist() override;
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override;
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  void OnDomainDestroyed(DomainId domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  TscRange Sampled() const override { return sampled_; }
  std::vector<recording::StreamInfo> Streams() const override { return state_.streams; }
  std::vector<std::string> FinalNotes() const override;

 private:
  // Connects, and starts the sandbox, of which nothing is asked yet.
  static absl::StatusOr<std::unique_ptr<AgentProxy>> Begin(const recording::DomainInfo& domain,
                                                           const AgentRequest& request,
                                                           const AgentSource::Connect& connect,
                                                           const agent::Host& host,
                                                           const Worker& worker);

  AgentProxy(recording::DomainInfo domain, AgentRequest request, agent::Host host, Sandbox sandbox,
             std::unique_ptr<Channel> guest, int data);

  // Makes a call, for which the stub itself has so much time, and takes its reply. The error is of
  // this process's half: then the other one is ended, and all later calls fail.
  absl::StatusOr<AgentReply> Call(const AgentCallMessage& message, std::chrono::milliseconds time);
  absl::StatusOr<AgentReply> AwaitReply(std::chrono::milliseconds time);
  // A whole reply, if one has come. Errors: it is too long, or damaged; the process is gone.
  absl::StatusOr<std::optional<AgentReply>> TakeReply();
  bool Send(const AgentCallMessage& message) const;
  absl::Status GiveUp(const absl::Status& why);
  // As AgentSource::Fetch.
  absl::StatusOr<agent::FilePart> Fetch(recording::SymbolFile::Kind kind);
  // Ends both connections, after what is on the way to the guest.
  void Disconnect();
  // Hands on the samples of a reply, if they are its domain's and not too many in all.
  void Take(const absl::StatusOr<AgentReply>& reply, recording::SampleWriter& writer);
  std::string Name() const;

  recording::DomainInfo domain_;
  AgentRequest request_;
  agent::Host host_;
  std::optional<Sandbox> sandbox_;
  std::optional<AgentRelay> relay_;
  bool filtered_;
  std::vector<std::byte> received_;  // of a reply
  absl::Status failed_;
  AgentState state_;  // after the last call
  std::vector<recording::EventInfo> events_;
  uint64_t received_counts_ = 0;  // bytes of samples
  struct FileTransfer {
    std::chrono::steady_clock::time_point until;
    size_t received = 0;  // bytes
  };
  std::optional<FileTransfer> file_transfer_;  // a file of which more follows
  TscRange sampled_;
};

}  // namespace xenoscope::sampler
