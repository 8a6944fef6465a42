#include "sampler/agent/send_shared.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// After a recording an agent offers its next channel, as soon as its guest lets it run.
constexpr milliseconds kLongestOffer{5'000};
constexpr milliseconds kOfferPollInterval{100};
constexpr size_t kSharedPartBytes = agent::kMaxPayload / 2;

absl::StatusOr<std::unique_ptr<Channel>> ConnectSoon(const AgentSource::Connect& connect,
                                                     DomainId domain) {
  const auto until = steady_clock::now() + kLongestOffer;
  while (true) {
    absl::StatusOr<std::unique_ptr<Channel>> channel = connect(domain);
    if (!absl::IsNotFound(channel.status()) || steady_clock::now() >= until) return channel;
    std::this_thread::sleep_for(kOfferPollInterval);
  }
}

// Passes the bytes to the agent's process, in parts that its socket takes at once.
absl::Status SendParts(AgentCaller& caller, Bytes bytes) {
  const agent::Limits& limits = caller.request().limits;
  AgentCallMessage message{AgentCall::kShare};
  milliseconds time = limits.hello + limits.ready;
  do {
    const Bytes part = bytes.first(std::min(bytes.size(), kSharedPartBytes));
    bytes = bytes.subspan(part.size());
    message.bytes.assign(part.begin(), part.end());
    message.last = bytes.empty();
    if (message.last) time += limits.share;
    XENOSCOPE_ASSIGN_OR_RETURN(const AgentReply reply, caller.Call(message, time));
    XENOSCOPE_RETURN_IF_ERROR(reply.status);
    time = milliseconds(0);
  } while (!bytes.empty());
  return absl::OkStatus();
}

}  // namespace

absl::Status SendShared(const recording::DomainInfo& domain, Bytes bytes,
                        const AgentSource::Connect& connect, const agent::Host& host,
                        const AgentRequest& request, const AgentCaller::Worker& worker) {
  if (bytes.size() > agent::kMaxSharedBytes) {
    return ExhaustedError("there are more than {} MB: record for a shorter time",
                          agent::kMaxSharedBytes >> 20);
  }
  const auto soon = [&connect](DomainId id) { return ConnectSoon(connect, id); };
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<AgentCaller> caller,
                             AgentCaller::Start(domain, request, soon, host, worker));
  absl::Status sent = SendParts(*caller, bytes);
  if (caller->IsOpen()) {
    caller->Call({AgentCall::kClose}, request.limits.hello).status().IgnoreError();
    caller->Disconnect();
  }
  return sent;
}

}  // namespace xenoscope::sampler
