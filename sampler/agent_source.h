// Samples that guests take of themselves: the source of the active domains. Each of them runs an
// agent (`xenoscope agent`, sampler/agent_server.h), which this drives.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "recording/sample.h"
#include "recording/sample_writer.h"
#include "sampler/agent_messages.h"
#include "sampler/agent_session.h"
#include "sampler/channel.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

struct AgentRequest {
  std::vector<recording::DomainInfo> domains;  // that are to be active
  agent::Prepare how;
  uint64_t clock_hz = 0;  // of the host's TSC
  agent::Limits limits;
};

class AgentSource final : public Source {
 public:
  using Connect = std::function<absl::StatusOr<std::unique_ptr<Channel>>(DomainId)>;

  struct Opened {
    std::unique_ptr<AgentSource> source;  // null when no domain's agent answers
    // The domains that cannot be active, and why.
    std::vector<std::pair<DomainId, absl::Status>> silent;
  };
  static Opened Open(const AgentRequest& request, const Connect& connect,
                     const std::function<Tsc()>& read_tsc);

  // The number of its first event in the recording; 0 until it is set, which is before Start.
  void SetFirstEvent(uint8_t number) { first_event_ = number; }

  // The domains that are to be active ones of dom0's xenoprof: their events are its own, the first
  // of the recording, and they sample when it does.
  std::vector<DomainId> Members() const;
  // Lets a member take part, as XenoprofSession::Domains::enlist.
  absl::StatusOr<bool> EnlistMember(DomainId member);
  // Ends the session with a domain: it is not to be active after all.
  void Dismiss(DomainId domain);
  // Whether a domain is left.
  bool HasGuests() const { return !guests_.empty(); }

  recording::SourceInfo Info() const override;
  std::vector<recording::EventInfo> Events() const override;
  recording::Role RoleOf(DomainId domain) const override;
  std::vector<std::string> Notes() const override;
  absl::Status Start() override;
  std::chrono::steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& writer) override;
  absl::Status Welcome(const recording::DomainInfo& domain) override;
  void Farewell(DomainId domain) override;
  absl::Status Stop(recording::SampleWriter& writer) override;
  absl::Status Save(const recording::Writer& writer, recording::RecordingInfo& info) override;
  absl::Status Close() override;
  TscRange Sampled() const override { return sampled_; }
  std::vector<recording::StreamInfo> Streams() const override;
  std::vector<std::string> Afterwards() const override;

 private:
  struct Guest {
    std::unique_ptr<agent::Session> session;
    bool is_member = false;             // of dom0's xenoprof
    std::vector<uint8_t> events;        // indices into events_ of the session's events, if not
    recording::ProcessChunk processes;  // to be written
    bool told = false;                  // that its session has ended
    bool stopped = false;
  };

  // A sample that waits for those that may still come and were taken before it.
  struct Held {
    DomainId domain;
    recording::TimedEntry entry;
    std::vector<Address> callers;
  };

  explicit AgentSource(std::function<Tsc()> read_tsc) : read_tsc_(std::move(read_tsc)) {}

  void Take(std::unique_ptr<agent::Session> session, const agent::Prepare& how);
  void Hold(const Guest& guest, const recording::Sample& sample);
  void Step();
  void StopGuest(Guest& guest);
  // Writes what is known of processes, and the samples that were taken before `until`, in order.
  void Write(Tsc until, recording::SampleWriter& writer);

  uint8_t first_event_ = 0;
  std::function<Tsc()> read_tsc_;
  std::vector<Guest> guests_;
  std::vector<recording::EventInfo> events_;  // of all guests, equal ones once
  std::vector<Held> held_;
  std::vector<std::string> notes_;
  std::vector<std::string> afterwards_;
  std::chrono::steady_clock::time_point due_;
  TscRange sampled_;
};

}  // namespace xenoscope::sampler
