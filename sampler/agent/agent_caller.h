// Calls to the process without privileges that reads what an agent sends: `record` and `stat`,
// which are root, pass it the guest's bytes unread, and check its replies
// (sampler/agent/agent_calls.h). A guest that takes that process over can make up figures of its
// own domain, which it can do anyway, and nothing else.
//
//   guest ==channel==> AgentRelay ==socket==> [ agent::Session ]  in the sandbox
//                      AgentCaller <--calls--> [ agent_worker.h ]
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "recording/info.h"
#include "sampler/agent/agent_calls.h"
#include "sampler/agent/agent_relay.h"
#include "sampler/agent/agent_source.h"
#include "sampler/agent/agent_worker.h"
#include "sampler/sandbox.h"

namespace xenoscope::sampler {

class AgentCaller {
 public:
  // The function that runs in the sandbox: ServeAgentCalls, except in tests.
  using Worker = std::function<void(int control, int data, const recording::DomainInfo& domain,
                                    const AgentRequest& request, const agent::Host& host)>;

  // The longest time for which the process may wait for a processor, after the time of its call
  // and agent::Limits::reply.
  static constexpr std::chrono::milliseconds kLongestWait{50'000};
  // The factor by which samples may be larger in a reply than in a message: there a sample is an
  // entry with its chunk's header, here a TimedEntry.
  static constexpr uint64_t kSampleExpansion = 4;
  // The same for all samples of a recording with their stacks, which may have as many bytes as the
  // agent may send (AgentSource).
  static constexpr uint64_t kExpansionWithStacks = kSampleExpansion + 1;

  // Connects to the agent of `domain` and starts the process, without a call yet. To be called
  // before any other thread runs. Errors: the domain has no agent; there is no sandbox.
  static absl::StatusOr<std::unique_ptr<AgentCaller>> Start(const recording::DomainInfo& domain,
                                                            const AgentRequest& request,
                                                            const AgentSource::Connect& connect,
                                                            const agent::Host& host,
                                                            const Worker& worker);

  // Makes a call and returns its reply. `time` is how long the call itself may take. It may take
  // agent::Limits::reply longer, and where processors are busy so much processor time
  // (kLongestWait). An error is one of this process's side: then the other process is ended, and
  // all later calls fail.
  absl::StatusOr<AgentReply> Call(const AgentCallMessage& message, std::chrono::milliseconds time);
  // Ends the process, which replied what it cannot know, and returns the error of later calls.
  absl::Status GiveUp(const absl::Status& why);
  // Ends both connections, after what is on its way to the guest.
  void Disconnect();

  [[nodiscard]] bool IsOpen() const { return sandbox_.has_value(); }
  // Returns why the process was ended early.
  [[nodiscard]] const absl::Status& failed() const { return failed_; }
  // Returns whether the process may make few system calls only.
  [[nodiscard]] bool filtered() const { return filtered_; }
  [[nodiscard]] const recording::DomainInfo& domain() const { return domain_; }
  [[nodiscard]] const AgentRequest& request() const { return request_; }
  [[nodiscard]] const agent::Host& host() const { return host_; }

 private:
  AgentCaller(recording::DomainInfo domain, AgentRequest request, agent::Host host, Sandbox sandbox,
              std::unique_ptr<Channel> guest, int data);

  absl::StatusOr<AgentReply> AwaitReply(std::chrono::milliseconds time);
  // Returns a whole reply, if one has come. Errors: it is too long or damaged; the process is gone.
  absl::StatusOr<std::optional<AgentReply>> TakeReply();
  [[nodiscard]] bool Send(const AgentCallMessage& message) const;

  recording::DomainInfo domain_;
  AgentRequest request_;
  agent::Host host_;
  std::optional<Sandbox> sandbox_;
  std::optional<AgentRelay> relay_;
  bool filtered_;
  std::vector<std::byte> received_;  // bytes of the reply that is being received
  absl::Status failed_;
};

}  // namespace xenoscope::sampler
