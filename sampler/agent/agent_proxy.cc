#include "sampler/agent/agent_proxy.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "recording/writer.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The additional time for a process that has to wait for a processor.
constexpr milliseconds kSlack(10'000);
// The additional time after a signal from the user.
constexpr milliseconds kSlackAfterSignal(2'000);
// The interval between checks for such a signal.
constexpr milliseconds kPollInterval(100);
// The memory that the process may have, in bytes; agent::Limits allow it to keep less.
constexpr uint64_t kMemory = uint64_t{512} << 20;
constexpr size_t kMaxReplyOverhead = size_t{1} << 20;  // bytes of a reply besides its lists
// The factor by which samples may be larger in the recording than in a message: there a sample is
// an entry with its chunk's header, here a TimedEntry.
constexpr uint64_t kExpansion = 4;
constexpr size_t kBlockSize = size_t{64} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<AgentProxy>> AgentProxy::Begin(const recording::DomainInfo& domain,
                                                              const AgentRequest& request,
                                                              const AgentSource::Connect& connect,
                                                              const agent::Host& host,
                                                              const Worker& worker) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Channel> guest, connect(domain.id));
  std::array<int, 2> data{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, data.data()) != 0) {
    return ErrnoError(errno, "cannot connect to the process that reads what its agent sends");
  }
  const std::array<int, 1> kept{data[1]};
  auto sandbox = Sandbox::Start({.memory_bytes = kMemory, .files = kept}, [&](int control) {
    worker(control, data[1], domain, request, host);
  });
  close(data[1]);
  if (!sandbox.ok()) {
    close(data[0]);
    return sandbox.status();
  }
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<AgentProxy>(
      new AgentProxy(domain, request, host, *std::move(sandbox), std::move(guest), data[0]));
}

absl::StatusOr<std::unique_ptr<AgentProxy>> AgentProxy::Open(const recording::DomainInfo& domain,
                                                             const AgentRequest& request,
                                                             const AgentSource::Connect& connect,
                                                             const agent::Host& host,
                                                             const Worker& worker) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<AgentProxy> proxy,
                             Begin(domain, request, connect, host, worker));
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
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<AgentProxy> proxy,
                             Begin(domain, request, connect, host, worker));
  XENOSCOPE_ASSIGN_OR_RETURN(AgentReply reply, proxy->Call({AgentCall::kGreet}, limits.hello));
  proxy->Disconnect();
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  return std::move(reply.program);
}

AgentProxy::AgentProxy(recording::DomainInfo domain, AgentRequest request, agent::Host host,
                       Sandbox sandbox, std::unique_ptr<Channel> guest, int data)
    : domain_(std::move(domain)),
      request_(std::move(request)),
      host_(std::move(host)),
      sandbox_(std::move(sandbox)),
      filtered_(sandbox_->filtered()) {
  relay_.emplace(std::move(guest), data, sandbox_->socket());
}

std::string AgentProxy::Name() const { return DomainLabel(domain_.id, domain_.name); }

bool AgentProxy::Send(const AgentCallMessage& message) const {
  const std::vector<std::byte> frame = Encode(message);
  return send(sandbox_->socket(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(frame.size());
}

absl::StatusOr<AgentReply> AgentProxy::Call(const AgentCallMessage& message, milliseconds time) {
  XENOSCOPE_RETURN_IF_ERROR(failed_);
  if (!sandbox_) return PreconditionError("it is closed");
  relay_->Move();
  if (!Send(message)) return GiveUp(absl::UnavailableError("it takes no calls"));
  absl::StatusOr<AgentReply> reply = AwaitReply(time + kSlack);
  if (!reply.ok()) return GiveUp(reply.status());
  relay_->Move();
  state_ = reply->state;
  return reply;
}

absl::StatusOr<AgentReply> AgentProxy::AwaitReply(milliseconds time) {
  steady_clock::time_point until = steady_clock::now() + time;
  bool interrupted = false;
  while (true) {
    relay_->Move();
    XENOSCOPE_ASSIGN_OR_RETURN(std::optional<AgentReply> reply, TakeReply());
    if (reply) return *std::move(reply);
    const steady_clock::time_point now = steady_clock::now();
    if (now >= until) return absl::DeadlineExceededError("it did not reply in time");
    if (!interrupted && host_.is_interrupted()) {
      interrupted = true;
      until = std::min(until, now + kSlackAfterSignal);
      if (!Send({AgentCall::kInterrupt})) return absl::UnavailableError("it takes no calls");
    }
    relay_->Wait(std::min(until, now + kPollInterval));
  }
}

absl::StatusOr<std::optional<AgentReply>> AgentProxy::TakeReply() {
  const size_t most = kMaxReplyOverhead + kExpansion * request_.limits.pending_bytes;
  while (true) {
    if (const auto size = Load<uint32_t>(received_, 0)) {
      if (*size > most) return ExhaustedError("its reply is longer than {} MB", most >> 20);
      if (const auto payload = Slice(received_, sizeof *size, *size)) {
        if (received_.size() > sizeof *size + payload->size()) {
          return InvalidError("it replied to what it was not asked");
        }
        auto reply = DecodeReply(*payload, domain_.id, domain_.vcpus);
        received_.clear();
        return reply;
      }
    }
    std::array<std::byte, kBlockSize> piece;
    const ssize_t n = recv(sandbox_->socket(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n <= 0) return absl::UnavailableError("it has gone");
    received_.insert(received_.end(), piece.begin(), piece.begin() + n);
  }
}

absl::Status AgentProxy::GiveUp(const absl::Status& why) {
  relay_.reset();
  const std::string end = sandbox_->End();
  sandbox_.reset();
  for (recording::StreamInfo& stream : state_.streams) stream.complete = false;
  failed_ = absl::Status(
      why.code(),
      fmt::format("the process that reads what its agent sends: {}; {}", Message(why), end));
  return failed_;
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

recording::Role AgentProxy::RoleOf(DomainId domain) const {
  return domain == domain_.id ? recording::Role::kActive : recording::Role::kNone;
}

std::vector<std::string> AgentProxy::Notes() const {
  std::vector<std::string> notes = state_.notes;
  if (!filtered_) {
    notes.push_back(fmt::format(
        "{}: what its agent sends is read by a process without privileges, but with all system "
        "calls: this kernel has no seccomp (CONFIG_SECCOMP_FILTER)",
        Name()));
  }
  return notes;
}

absl::StatusOr<bool> AgentProxy::Enlist() {
  XENOSCOPE_ASSIGN_OR_RETURN(const AgentReply reply,
                             Call({AgentCall::kEnlist}, request_.limits.answer));
  XENOSCOPE_RETURN_IF_ERROR(reply.status);
  return reply.flag;
}

// Errors from here on cost this domain's samples, and FinalNotes reports them.
absl::Status AgentProxy::Start() {
  sampled_.begin = host_.read_tsc();
  const auto reply = Call({AgentCall::kStart}, milliseconds(0));
  return reply.ok() ? reply->status : absl::OkStatus();
}

steady_clock::time_point AgentProxy::Due() const {
  constexpr auto kLongest = std::chrono::seconds(1);
  const steady_clock::time_point now = steady_clock::now();
  if (!sandbox_) return now + kLongest;
  const steady_clock::time_point due{std::chrono::nanoseconds(state_.due_ns)};
  return std::clamp(due, now, now + kLongest);
}

void AgentProxy::Take(const absl::StatusOr<AgentReply>& reply, recording::SampleWriter& writer) {
  if (!reply.ok() || reply->bytes.empty()) return;
  received_counts_ += reply->bytes.size();
  absl::Status status = CheckChunks(reply->bytes, domain_.id);
  if (received_counts_ > kExpansion * request_.limits.bytes) {
    status = ExhaustedError("it gives more samples than the agent can have sent");
  }
  if (status.ok()) {
    writer.Append(Bytes(reply->bytes));
  } else if (sandbox_) {
    GiveUp(status).IgnoreError();
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
  if (domain == domain_.id) Call({AgentCall::kOnDomainDestroyed}, milliseconds(0)).IgnoreError();
}

absl::Status AgentProxy::Stop(recording::SampleWriter& writer) {
  sampled_.end = host_.read_tsc();  // the recording does not include the wait for its agent
  const auto reply = Call({AgentCall::kStop}, request_.limits.answer);
  Take(reply, writer);
  if (state_.events.size() == events_.size()) {  // with the periods as they really were
    for (size_t i = 0; i < events_.size(); ++i) events_[i].period = state_.events[i].period;
  }
  return reply.ok() ? reply->status : absl::OkStatus();
}

absl::StatusOr<agent::FilePart> AgentProxy::Fetch(recording::SymbolFile::Kind kind) {
  const steady_clock::time_point now = steady_clock::now();
  if (!file_transfer_) file_transfer_ = FileTransfer{.until = now + request_.limits.file};
  AgentCallMessage message{AgentCall::kFetch};
  message.file = kind;
  const auto left = std::chrono::ceil<milliseconds>(file_transfer_->until - now);
  absl::StatusOr<AgentReply> reply = Call(message, std::max(left, milliseconds(0)));
  FileTransfer file = *std::exchange(file_transfer_, std::nullopt);
  XENOSCOPE_RETURN_IF_ERROR(reply.status());
  XENOSCOPE_RETURN_IF_ERROR(reply->status);
  file.received += reply->bytes.size();
  if (file.received > request_.limits.file_bytes || (reply->flag && reply->bytes.empty())) {
    return GiveUp(ExhaustedError("it gives more of a file than the agent can have sent"));
  }
  if (steady_clock::now() > file.until + kSlack) {
    return GiveUp(absl::DeadlineExceededError("it did not give a file in time"));
  }
  if (reply->flag) file_transfer_ = file;
  return agent::FilePart{.last = !reply->flag, .content = std::move(reply->bytes)};
}

absl::Status AgentProxy::Save(const recording::Writer& writer, recording::RecordingInfo& info) {
  return SaveAgentFiles(
      domain_, [this](recording::SymbolFile::Kind kind) { return Fetch(kind); }, writer, info);
}

absl::Status AgentProxy::Close() {
  if (!sandbox_) return absl::OkStatus();
  const auto reply = Call({AgentCall::kClose}, request_.limits.answer);
  Disconnect();
  return reply.ok() ? reply->status : absl::OkStatus();
}

void AgentProxy::Disconnect() {
  // The bye message is on its way.
  const steady_clock::time_point until = steady_clock::now() + kPollInterval;
  while (relay_ && relay_->HasWaiting() && steady_clock::now() < until) {
    relay_->Wait(until);
    relay_->Move();
  }
  relay_.reset();
  if (sandbox_) sandbox_->End();
  sandbox_.reset();
}

std::vector<std::string> AgentProxy::FinalNotes() const {
  std::vector<std::string> lines = state_.final_notes;
  if (!failed_.ok()) {
    lines.push_back(fmt::format("{}: its agent was given up, its samples are kept up to there: {}",
                                Name(), Message(failed_)));
  }
  return lines;
}

}  // namespace xenoscope::sampler
