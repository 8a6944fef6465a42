#include "sampler/agent/agent_caller.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The additional time after a signal from the user.
constexpr milliseconds kSlackAfterSignal(2'000);
// The interval between checks for such a signal.
constexpr milliseconds kCallerPollInterval(100);
// The memory that the process may have, in bytes; agent::Limits allow it to keep less.
constexpr uint64_t kMemory = uint64_t{512} << 20;
constexpr size_t kMaxReplyOverhead = size_t{1} << 20;  // bytes of a reply besides its lists
constexpr size_t kBlockSize = size_t{64} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<AgentCaller>> AgentCaller::Start(const recording::DomainInfo& domain,
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
  return std::unique_ptr<AgentCaller>(
      new AgentCaller(domain, request, host, *std::move(sandbox), std::move(guest), data[0]));
}

AgentCaller::AgentCaller(recording::DomainInfo domain, AgentRequest request, agent::Host host,
                         Sandbox sandbox, std::unique_ptr<Channel> guest, int data)
    : domain_(std::move(domain)),
      request_(std::move(request)),
      host_(std::move(host)),
      sandbox_(std::move(sandbox)),
      filtered_(sandbox_->filtered()) {
  relay_.emplace(std::move(guest), data, sandbox_->socket());
}

bool AgentCaller::Send(const AgentCallMessage& message) const {
  const std::vector<std::byte> frame = Encode(message);
  return send(sandbox_->socket(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(frame.size());
}

absl::StatusOr<AgentReply> AgentCaller::Call(const AgentCallMessage& message, milliseconds time) {
  XENOSCOPE_RETURN_IF_ERROR(failed_);
  if (!sandbox_) return PreconditionError("it is closed");
  relay_->Move();
  if (!Send(message)) return GiveUp(absl::UnavailableError("it takes no calls"));
  absl::StatusOr<AgentReply> reply = AwaitReply(time + request_.limits.reply);
  if (!reply.ok()) return GiveUp(reply.status());
  relay_->Move();
  return reply;
}

absl::StatusOr<AgentReply> AgentCaller::AwaitReply(milliseconds time) {
  const std::chrono::nanoseconds used_before = sandbox_->Used();
  std::chrono::nanoseconds used = used_before;
  steady_clock::time_point until = steady_clock::now() + time;
  bool interrupted = false;
  while (true) {
    relay_->Move();
    XENOSCOPE_ASSIGN_OR_RETURN(std::optional<AgentReply> reply, TakeReply());
    if (reply) return *std::move(reply);
    const steady_clock::time_point now = steady_clock::now();
    if (now >= until) {
      // A process that has to wait for a processor is not one that hangs.
      const std::chrono::nanoseconds seen = std::exchange(used, sandbox_->Used());
      const bool is_starved = !interrupted && now < until + kLongestWait &&
                              used - used_before < time && (used > seen || sandbox_->IsRunnable());
      if (!is_starved) return absl::DeadlineExceededError("it did not reply in time");
    }
    if (!interrupted && host_.is_interrupted()) {
      interrupted = true;
      until = std::min(until, now + kSlackAfterSignal);
      if (!Send({AgentCall::kInterrupt})) return absl::UnavailableError("it takes no calls");
    }
    const steady_clock::time_point next = now + kCallerPollInterval;
    relay_->Wait(now < until ? std::min(until, next) : next);
  }
}

absl::StatusOr<std::optional<AgentReply>> AgentCaller::TakeReply() {
  const size_t most = kMaxReplyOverhead + kSampleExpansion * request_.limits.pending_bytes;
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

absl::Status AgentCaller::GiveUp(const absl::Status& why) {
  relay_.reset();
  const std::string end = sandbox_->End();
  sandbox_.reset();
  failed_ = absl::Status(
      why.code(),
      fmt::format("the process that reads what its agent sends: {}; {}", Message(why), end));
  return failed_;
}

void AgentCaller::Disconnect() {
  // The bye message is on its way.
  const steady_clock::time_point until = steady_clock::now() + kCallerPollInterval;
  while (relay_ && relay_->HasWaiting() && steady_clock::now() < until) {
    relay_->Wait(until);
    relay_->Move();
  }
  relay_.reset();
  if (sandbox_) sandbox_->End();
  sandbox_.reset();
}

}  // namespace xenoscope::sampler
