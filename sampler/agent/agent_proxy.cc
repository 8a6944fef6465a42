#include "sampler/agent/agent_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "recording/writer.h"

namespace xenoscope::sampler {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<AgentProxy>> AgentProxy::Open(const recording::DomainInfo& domain,
                                                             const AgentRequest& request,
                                                             const AgentSource::Connect& connect,
                                                             const agent::Host& host,
                                                             const Worker& worker) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<AgentCaller> caller,
                             AgentCaller::Start(domain, request, connect, host, worker));
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<AgentProxy> proxy(new AgentProxy(std::move(caller)));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const AgentReply opened,
      proxy->Call({AgentCall::kOpen}, request.limits.hello + request.limits.ready));
  XENOSCOPE_RETURN_IF_ERROR(opened.status);
  return proxy;
}

absl::StatusOr<std::string> AgentProxy::Greet(const recording::DomainInfo& domain,
                                              const agent::Limits& limits,
                                              const AgentSource::Connect& connect,
                                              const agent::Host& host, const Worker& worker) {
  AgentRequest request;
  request.limits = limits;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<AgentCaller> caller,
                             AgentCaller::Start(domain, request, connect, host, worker));
  XENOSCOPE_ASSIGN_OR_RETURN(AgentReply reply, caller->Call({AgentCall::kGreet}, limits.hello));
  caller->Disconnect();
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  return std::move(reply.program);
}

AgentProxy::AgentProxy(std::unique_ptr<AgentCaller> caller) : caller_(std::move(caller)) {}

std::string AgentProxy::Name() const { return DomainLabel(domain().id, domain().name); }

absl::StatusOr<AgentReply> AgentProxy::Call(const AgentCallMessage& message, milliseconds time) {
  absl::StatusOr<AgentReply> reply = caller_->Call(message, time);
  if (reply.ok()) state_ = reply->state;
  return reply;
}

absl::Status AgentProxy::NumberEvents(size_t first) {
  AgentCallMessage message{AgentCall::kNumberEvents};
  message.first = first;
  XENOSCOPE_ASSIGN_OR_RETURN(const AgentReply reply, Call(message, milliseconds(0)));
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  if (first + state_.events.size() > recording::kMaxRecordingEvents) {
    return ExhaustedError("a recording can have {} different events",
                          recording::kMaxRecordingEvents);
  }
  events_ = state_.events;
  return absl::OkStatus();
}

recording::SourceInfo AgentProxy::Info() const {
  recording::SourceInfo info = AgentSourceInfo(domain().id);
  info.stacks = state_.stacks;
  return info;
}

recording::Role AgentProxy::RoleOf(DomainId domain) const {
  return domain == caller_->domain().id ? recording::Role::kActive : recording::Role::kNone;
}

std::vector<std::string> AgentProxy::Notes() const {
  std::vector<std::string> notes = state_.notes;
  if (!caller_->filtered()) {
    notes.push_back(fmt::format(
        "{}: what its agent sends is read by a process without privileges, but with all system "
        "calls: this kernel has no seccomp (CONFIG_SECCOMP_FILTER)",
        Name()));
  }
  return notes;
}

absl::StatusOr<bool> AgentProxy::Enlist() {
  XENOSCOPE_ASSIGN_OR_RETURN(const AgentReply reply,
                             Call({AgentCall::kEnlist}, caller_->request().limits.answer));
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  return reply.flag;
}

// Errors from here on cost this domain's samples, and FinalNotes reports them.
absl::Status AgentProxy::Start() {
  sampled_.begin = caller_->host().read_tsc();
  const auto reply = Call({AgentCall::kStart}, milliseconds(0));
  return reply.ok() ? reply->status : absl::OkStatus();
}

steady_clock::time_point AgentProxy::Due() const {
  constexpr auto kLongest = std::chrono::seconds(1);
  const steady_clock::time_point now = steady_clock::now();
  if (!caller_->IsOpen()) return now + kLongest;
  const steady_clock::time_point due{std::chrono::nanoseconds(state_.due_ns)};
  return std::clamp(due, now, now + kLongest);
}

void AgentProxy::Take(const absl::StatusOr<AgentReply>& reply, recording::SampleWriter& writer) {
  if (!reply.ok() || reply->bytes.empty()) return;
  received_counts_ += reply->bytes.size();
  absl::Status status = CheckChunks(reply->bytes, domain().id);
  if (received_counts_ > AgentCaller::kExpansionWithStacks * caller_->request().limits.bytes) {
    status = ExhaustedError("it gives more samples than the agent can have sent");
  }
  if (status.ok()) {
    writer.Append(Bytes(reply->bytes));
  } else if (caller_->IsOpen()) {
    caller_->GiveUp(status).IgnoreError();
  }
}

absl::Status AgentProxy::Collect(recording::SampleWriter& writer) {
  const auto reply = Call({AgentCall::kCollect}, milliseconds(0));
  Take(reply, writer);
  return reply.ok() ? reply->status : absl::OkStatus();
}

absl::Status AgentProxy::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("agents are asked only before sampling starts");
}

void AgentProxy::OnDomainDestroyed(DomainId domain) {
  if (domain == caller_->domain().id)
    Call({AgentCall::kOnDomainDestroyed}, milliseconds(0)).IgnoreError();
}

absl::Status AgentProxy::Stop(recording::SampleWriter& writer) {
  sampled_.end =
      caller_->host().read_tsc();  // the recording does not include the wait for its agent
  const auto reply = Call({AgentCall::kStop}, caller_->request().limits.stop);
  Take(reply, writer);
  if (state_.events.size() == events_.size()) {  // with the periods as they really were
    for (size_t i = 0; i < events_.size(); ++i) events_[i].period = state_.events[i].period;
  }
  return reply.ok() ? reply->status : absl::OkStatus();
}

absl::StatusOr<agent::FilePart> AgentProxy::Fetch(recording::SymbolFile::Kind kind) {
  const steady_clock::time_point now = steady_clock::now();
  if (!file_transfer_) file_transfer_ = FileTransfer{.until = now + caller_->request().limits.file};
  AgentCallMessage message{AgentCall::kFetch};
  message.file = kind;
  const auto left = std::chrono::ceil<milliseconds>(file_transfer_->until - now);
  absl::StatusOr<AgentReply> reply = Call(message, std::max(left, milliseconds(0)));
  FileTransfer file = *std::exchange(file_transfer_, std::nullopt);
  XENOSCOPE_RETURN_IF_ERROR(reply.status());
  XENOSCOPE_RETURN_IF_ERROR(reply->status);
  file.received += reply->bytes.size();
  if (file.received > caller_->request().limits.file_bytes ||
      (reply->flag && reply->bytes.empty())) {
    return caller_->GiveUp(ExhaustedError("it gives more of a file than the agent can have sent"));
  }
  const milliseconds slack = caller_->request().limits.reply + AgentCaller::kLongestWait;
  if (steady_clock::now() > file.until + slack) {
    return caller_->GiveUp(absl::DeadlineExceededError("it did not give a file in time"));
  }
  if (reply->flag) file_transfer_ = file;
  return agent::FilePart{.last = !reply->flag, .content = std::move(reply->bytes)};
}

absl::Status AgentProxy::Save(const recording::Writer& writer, recording::RecordingInfo& info) {
  return SaveAgentFiles(
      domain(), [this](recording::SymbolFile::Kind kind) { return Fetch(kind); }, writer, info);
}

absl::Status AgentProxy::Close() {
  if (!caller_->IsOpen()) return absl::OkStatus();
  const auto reply = Call({AgentCall::kClose}, caller_->request().limits.stop);
  caller_->Disconnect();
  return reply.ok() ? reply->status : absl::OkStatus();
}

std::vector<recording::StreamInfo> AgentProxy::Streams() const {
  std::vector<recording::StreamInfo> streams = state_.streams;
  if (!caller_->failed().ok()) {
    for (recording::StreamInfo& stream : streams) stream.complete = false;
  }
  return streams;
}

std::vector<std::string> AgentProxy::FinalNotes() const {
  std::vector<std::string> lines = state_.final_notes;
  if (!caller_->failed().ok()) {
    lines.push_back(fmt::format("{}: its agent was given up, its samples are kept up to there: {}",
                                Name(), Message(caller_->failed())));
  }
  return lines;
}

}  // namespace xenoscope::sampler
