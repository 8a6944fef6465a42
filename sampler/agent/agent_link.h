// A link: messages over a channel, with a queue of messages to send and a reader of those that
// came.
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
  // `channel` must outlive the link, or be left by Close.
  explicit Link(Channel& channel) : channel_(&channel) {}

  // Appends a message to those that wait to be sent.
  void Queue(const AnyMessage& message);
  // Returns the number of bytes that wait to be sent.
  [[nodiscard]] size_t Queued() const { return out_.size() - sent_; }

  // Sends what there is room for, and receives at most about `limit` bytes. Errors (Unavailable):
  // the peer is gone; Next still returns what the peer had sent.
  absl::Status Pump(size_t limit);
  // Returns the next message that has come, if any. Errors: those of FrameReader.
  absl::StatusOr<std::optional<AnyMessage>> Next() { return reader_.Next(); }
  // Leaves the channel: from now on the peer is gone.
  void Close() { channel_ = nullptr; }
  // Returns the number of bytes received in all.
  [[nodiscard]] uint64_t received() const { return received_; }

  // Pumps until a message has come, or until `until`, when there is none.
  absl::StatusOr<std::optional<AnyMessage>> Await(std::chrono::steady_clock::time_point until);

  // Sends what there is room for, then sleeps as Channel::Wait does.
  void Wait(std::chrono::steady_clock::time_point until, int other);

 private:
  absl::Status Send();

  Channel* channel_;  // null: it was left
  FrameReader reader_;
  std::vector<std::byte> out_;
  size_t sent_ = 0;  // number of bytes of out_ that were sent
  uint64_t received_ = 0;
};

}  // namespace xenoscope::sampler::agent
