// Messages over a channel: a queue of those to be sent, and those that came.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/channel.h"

namespace xenoscope::sampler::agent {

class Link {
 public:
  // `channel` outlives the link.
  explicit Link(Channel& channel) : channel_(channel) {}

  // Puts a message behind those that wait to be sent.
  void Queue(const AnyMessage& message);
  // Bytes that wait to be sent.
  size_t Queued() const { return out_.size() - sent_; }

  // Sends what there is room for and receives no more than about `limit` bytes. Errors
  // (Unavailable): the peer is gone; what it had sent can still be had from Next.
  absl::Status Pump(size_t limit);
  // The next message that has come. Errors: those of FrameReader.
  absl::StatusOr<std::optional<AnyMessage>> Next() { return reader_.Next(); }
  // Bytes received in all.
  uint64_t received() const { return received_; }

  // Pumps until a message is there or `until`, when there is none.
  absl::StatusOr<std::optional<AnyMessage>> Await(std::chrono::steady_clock::time_point until);

  // Sends what there is room for, then sleeps as Channel::Wait.
  void Wait(std::chrono::steady_clock::time_point until, int other);

 private:
  absl::Status Send();

  Channel& channel_;
  FrameReader reader_;
  std::vector<std::byte> out_;
  size_t sent_ = 0;  // of out_
  uint64_t received_ = 0;
};

}  // namespace xenoscope::sampler::agent
