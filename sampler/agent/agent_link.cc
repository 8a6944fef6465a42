#include "sampler/agent/agent_link.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "sampler/agent/fd_channel.h"

namespace xenoscope::sampler::agent {
namespace {

constexpr size_t kReadSize = size_t{64} * 1024;

}  // namespace

void Link::Queue(const AnyMessage& message) {
  // What waits is moved only when as much has been sent.
  if (sent_ >= Queued()) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  const std::vector<std::byte> frame = Encode(message);
  out_.insert(out_.end(), frame.begin(), frame.end());
}

absl::Status Link::Send() {
  while (sent_ < out_.size()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const size_t n, channel_->Send(Bytes(out_).subspan(sent_)));
    if (n == 0) break;
    sent_ += n;
  }
  return absl::OkStatus();
}

// What the peer sent before it went is still received.
absl::Status Link::Pump(size_t limit) {
  if (channel_ == nullptr) return absl::UnavailableError("the connection was closed");
  absl::Status sending = Send();
  std::array<std::byte, kReadSize> buffer;
  for (size_t taken = 0; taken < limit;) {
    XENOSCOPE_ASSIGN_OR_RETURN(const size_t n, channel_->Receive(buffer));
    if (n == 0) break;
    reader_.Add(Bytes(buffer).first(n));
    taken += n;
    received_ += n;
  }
  return sending;
}

void Link::Wait(std::chrono::steady_clock::time_point until, int other) {
  if (channel_ == nullptr) return PollUntil(kNoFile, 0, other, until);
  Send().IgnoreError();  // Pump gets the error again
  channel_->Wait(Queued() > 0, until, other);
}

absl::StatusOr<std::optional<AnyMessage>> Link::Await(std::chrono::steady_clock::time_point until) {
  while (true) {
    const absl::Status pumped = Pump(kReadSize);
    XENOSCOPE_ASSIGN_OR_RETURN(std::optional<AnyMessage> message, Next());
    if (message) return message;
    if (!pumped.ok()) return pumped;
    if (std::chrono::steady_clock::now() >= until) return std::nullopt;
    Wait(until, kNoFile);
  }
}

}  // namespace xenoscope::sampler::agent
