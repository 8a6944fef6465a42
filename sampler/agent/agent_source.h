// Samples that a guest takes of itself: the source of one active domain. The guest runs an agent
// (`xenoscope agent`, sampler/agent/agent_server.h), which this drives. Each active domain has a
// source, a thread and a file of samples of its own, so that none waits for another.
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
#include "sampler/source.h"

namespace xenoscope::sampler {

struct AgentRequest {
  agent::Prepare how;
  agent::Limits limits;
};

// What recording.json says of the source of a domain's agent.
recording::SourceInfo AgentSourceInfo(DomainId domain);

// Gives one part of a guest's file after the other, as agent::Session::Fetch does.
using FetchPart = std::function<absl::StatusOr<agent::FilePart>(recording::SymbolFile::Kind)>;

// Adds to a recording the files of a guest from which its addresses become names, of those kinds
// that the user has not given; a part at a time is in memory. A file that cannot be had leaves
// addresses without names. Errors: the recording cannot be written.
absl::Status SaveAgentFiles(const recording::DomainInfo& domain, const FetchPart& fetch,
                            const recording::Writer& writer, recording::RecordingInfo& info);

class AgentSource final : public Source {
 public:
  using Connect = std::function<absl::StatusOr<std::unique_ptr<Channel>>(DomainId)>;

  // Greets the agent of `domain` and lets it get ready. Errors: it cannot be active, and why.
  static absl::StatusOr<std::unique_ptr<AgentSource>> Open(const recording::DomainInfo& domain,
                                                           const AgentRequest& request,
                                                           const Connect& connect,
                                                           const agent::Host& host);

  // Gives its events their numbers, before Start: an event has the number of an equal one of
  // `all` from `first` on, else it is added to `all`, which Events() then has, too. A member
  // of xenoprof counts dom0's events. Errors (ResourceExhausted): a recording has no numbers left.
  absl::Status NumberEvents(std::vector<recording::EventInfo>& all, size_t first);

  // Whether the domain is to be an active one of dom0's xenoprof: its events are dom0's, the first
  // of the recording, and it samples when dom0 does.
  bool IsMember() const { return is_member_; }
  const recording::DomainInfo& domain() const { return session_->domain(); }
  const agent::Session& session() const { return *session_; }

  recording::SourceInfo Info() const override { return AgentSourceInfo(domain().id); }
  std::vector<recording::EventInfo> Events() const override { return own_events_; }
  recording::Role RoleOf(DomainId domain) const override;
  std::vector<std::string> Notes() const override;
  bool WaitsForGuest() const override { return true; }
  absl::StatusOr<bool> Enlist() override { return session_->Enlist(); }
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override;
  void OnDomainDestroyed(DomainId domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  // The next part of the guest's file, as agent::Session::Fetch; empty at once: it has none, or its
  // agent knows none.
  absl::StatusOr<agent::FilePart> Fetch(recording::SymbolFile::Kind kind);
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  TscRange Sampled() const override { return sampled_; }
  std::vector<recording::StreamInfo> Streams() const override { return session_->Streams(); }
  std::vector<std::string> FinalNotes() const override;

 private:
  // A sample that waits for those that may still come and were taken before it. There are no more
  // than came between two answers about the clock, which agent::Limits::pending_bytes bounds.
  struct PendingSample {
    recording::TimedEntry entry;
    std::vector<Address> callers;
  };

  AgentSource(std::unique_ptr<agent::Session> session, agent::Host host, bool is_member);

  void AddPending(const recording::Sample& sample);
  void Step();
  void StopSession();
  // Writes what is known of processes, and the samples that were taken before `until`, in order.
  void Write(Tsc until, recording::SampleWriter& writer);
  std::string Name() const;

  std::unique_ptr<agent::Session> session_;
  agent::Host host_;
  bool is_member_;
  std::vector<size_t> own_;                       // the session's events that are own_events_
  std::vector<recording::EventInfo> own_events_;  // that no source before it has
  std::vector<uint8_t> numbers_;                  // of the session's events, in the recording
  std::vector<PendingSample> pending_samples_;
  recording::ProcessChunk processes_;  // to be written
  std::vector<std::string> notes_;
  std::vector<std::string> missing_;  // files that could not be had, and why
  bool is_stopped_ = false;
  std::chrono::steady_clock::time_point due_;
  TscRange sampled_;
};

}  // namespace xenoscope::sampler
