// A channel: a stream of bytes to and from a peer. Only Wait blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"

namespace xenoscope::sampler {

class Channel {
 public:
  // Closes the channel, which the peer notices.
  virtual ~Channel() = default;

  // Sends bytes and returns how many were sent: 0 when there is no room now. Errors (Unavailable):
  // the peer is gone.
  virtual absl::StatusOr<size_t> Send(Bytes bytes) = 0;
  // Receives bytes and returns their number: 0 when none are there now. What the peer sent before
  // it went is received first. Errors (Unavailable): the peer is gone.
  virtual absl::StatusOr<size_t> Receive(std::span<std::byte> into) = 0;

  // Sleeps until bytes have come, there is room to send (if `to_send`), the open file `other` can
  // be read, or `until`. It may return before that.
  virtual void Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) = 0;
};

// The `other` of Channel::Wait when there is no other file.
inline constexpr int kNoFile = -1;

}  // namespace xenoscope::sampler
