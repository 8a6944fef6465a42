#include "sampler/agent/agent_worker.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sampler/agent/agent_calls.h"
#include "sampler/agent/fd_channel.h"

namespace xenoscope::sampler {
namespace {

bool ReceiveAll(int socket, void* into, size_t size) {
  return recv(socket, into, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

std::optional<AgentCallMessage> ReceiveCall(int control) {
  uint32_t size = 0;
  if (!ReceiveAll(control, &size, sizeof size)) return std::nullopt;
  std::vector<std::byte> payload(size);
  if (!ReceiveAll(control, payload.data(), payload.size())) return std::nullopt;
  absl::StatusOr<AgentCallMessage> message = DecodeCall(payload);
  if (!message.ok()) return std::nullopt;
  return *std::move(message);
}

bool SendAll(int socket, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// Returns whether `record` has sent more. During a call it sends only the request to end it.
bool HasMore(int control) {
  pollfd wait{control, POLLIN, 0};
  return poll(&wait, 1, 0) == 1;
}

class Worker {
 public:
  Worker(int data, const recording::DomainInfo& domain, const AgentRequest& request,
         agent::Host host)
      : data_(data), domain_(domain), request_(request), host_(std::move(host)) {}

  AgentReply Do(const AgentCallMessage& message) {
    AgentReply reply;
    reply.status = Call(message, reply);
    if (source_ != nullptr) reply.state = State();
    return reply;
  }

 private:
  absl::Status Greet(AgentReply& reply) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        const std::unique_ptr<agent::Session> session,
        agent::Session::Open(domain_, std::make_unique<FdChannel>(data_), host_, request_.limits));
    reply.program = session->hello().program;
    session->Bye();
    return absl::OkStatus();
  }

  // Greets the agent, unless that has been done.
  absl::Status GreetOnce() {
    if (session_ != nullptr) return absl::OkStatus();
    XENOSCOPE_ASSIGN_OR_RETURN(
        session_,
        agent::Session::Open(domain_, std::make_unique<FdChannel>(data_), host_, request_.limits));
    return absl::OkStatus();
  }

  absl::Status Count(const AgentCallMessage& message, AgentReply& reply) {
    XENOSCOPE_RETURN_IF_ERROR(GreetOnce());
    XENOSCOPE_ASSIGN_OR_RETURN(reply.counts, session_->Count({message.events}));
    return absl::OkStatus();
  }

  absl::Status Share(const AgentCallMessage& message) {
    XENOSCOPE_RETURN_IF_ERROR(GreetOnce());
    shared_.insert(shared_.end(), message.bytes.begin(), message.bytes.end());
    return message.last ? session_->Share(std::exchange(shared_, {})) : absl::OkStatus();
  }

  absl::Status Close() {
    if (session_ != nullptr) session_->Bye();
    return source_ == nullptr ? absl::OkStatus() : source_->Close();
  }

  absl::Status Open() {
    const auto connect = [this](DomainId) -> absl::StatusOr<std::unique_ptr<Channel>> {
      return std::make_unique<FdChannel>(data_);
    };
    XENOSCOPE_ASSIGN_OR_RETURN(source_, AgentSource::Open(domain_, request_, connect, host_));
    return absl::OkStatus();
  }

  absl::Status Call(const AgentCallMessage& message, AgentReply& reply) {
    if (message.call == AgentCall::kOpen) return Open();
    if (message.call == AgentCall::kGreet) return Greet(reply);
    if (message.call == AgentCall::kCount) return Count(message, reply);
    if (message.call == AgentCall::kShare) return Share(message);
    if (message.call == AgentCall::kClose) return Close();
    if (source_ == nullptr) return PreconditionError("it is not open");
    auto samples = recording::SampleWriter::InMemory();
    absl::Status status;
    switch (message.call) {
      case AgentCall::kNumberEvents:
        return source_->NumberEvents(message.first);
      case AgentCall::kEnlist: {
        XENOSCOPE_ASSIGN_OR_RETURN(reply.flag, source_->Enlist());
        return absl::OkStatus();
      }
      case AgentCall::kStart:
        return source_->Start();
      case AgentCall::kCollect:
        status = source_->Collect(samples);
        break;
      case AgentCall::kOnDomainDestroyed:
        source_->OnDomainDestroyed(domain_.id);
        break;
      case AgentCall::kStop:
        status = source_->Stop(samples);
        break;
      case AgentCall::kFetch: {
        XENOSCOPE_ASSIGN_OR_RETURN(agent::FilePart part, source_->Fetch(message.file));
        reply.flag = !part.last;
        reply.bytes = std::move(part.content);
        return absl::OkStatus();
      }
      default:
        return UnimplementedError("there is no such call");
    }
    reply.bytes = samples.Take();
    return status;
  }

  AgentState State() const {
    AgentState state;
    state.is_member = source_->IsMember();
    state.due_ns = std::chrono::nanoseconds(source_->Due().time_since_epoch()).count();
    state.events = source_->Events();
    state.notes = source_->Notes();
    state.final_notes = source_->FinalNotes();
    state.streams = source_->Streams();
    state.stacks = source_->Info().stacks;
    state.kernel_traces = source_->KernelTraces();
    return state;
  }

  int data_;
  const recording::DomainInfo& domain_;
  const AgentRequest& request_;
  const agent::Host host_;
  std::unique_ptr<AgentSource> source_;      // since kOpen
  std::unique_ptr<agent::Session> session_;  // since the first kCount or kShare
  std::vector<std::byte> shared_;            // what has come of kShare
};

}  // namespace

void ServeAgentCalls(int control, int data, const recording::DomainInfo& domain,
                     const AgentRequest& request, agent::Host host) {
  host.is_interrupted = [control] { return HasMore(control); };
  Worker worker(data, domain, request, std::move(host));
  while (const std::optional<AgentCallMessage> message = ReceiveCall(control)) {
    // The call that it was to end has ended already.
    if (message->call == AgentCall::kInterrupt) continue;
    if (!SendAll(control, Encode(worker.Do(*message)))) return;
  }
}

}  // namespace xenoscope::sampler
