// A way for bytes to and from a peer, in order, that never blocks where it is not asked to.
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
  // Closes; the peer then finds it gone.
  virtual ~Channel() = default;

  // How many of the bytes went out: 0 when there is no room now. Errors (Unavailable): the peer is
  // gone.
  virtual absl::StatusOr<size_t> Send(Bytes bytes) = 0;
  // How many bytes came: 0 when there are none now. What the peer sent before it went is received
  // first. Errors (Unavailable): the peer is gone.
  virtual absl::StatusOr<size_t> Receive(std::span<std::byte> into) = 0;

  // Sleeps until something came, or there is room (when `to_send`), or `other`, an open file, can
  // be read; no longer than until `until`. It may return before anything happened.
  virtual void Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) = 0;
};

// For Channel::Wait: no other file.
inline constexpr int kNoFile = -1;

}  // namespace xenoscope::sampler
