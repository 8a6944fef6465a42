// A channel over a connected socket, with both ends on one machine.
#pragma once

#include <chrono>

#include "sampler/agent/channel.h"

namespace xenoscope::sampler {

// Calls poll(2) for `events` on `fd` and for reading on `other`, each unless negative, until
// `until` at the latest.
void PollUntil(int fd, short events, int other, std::chrono::steady_clock::time_point until);

class FdChannel final : public Channel {
 public:
  // Takes the socket, and closes it in the end.
  explicit FdChannel(int fd) : fd_(fd) {}
  FdChannel(const FdChannel&) = delete;
  FdChannel& operator=(const FdChannel&) = delete;
  ~FdChannel() override;

  absl::StatusOr<size_t> Send(Bytes bytes) override;
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override;
  void Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) override;

 private:
  int fd_;
};

}  // namespace xenoscope::sampler
