#include "sampler/agent/fd_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

absl::Status Gone(int error) {
  return absl::UnavailableError(
      error == 0 || error == ECONNRESET || error == EPIPE
          ? "it closed the connection"
          : fmt::format("the connection broke: {}", std::strerror(error)));
}

bool MustWait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void PollUntil(int fd, short events, int other, std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
  constexpr int64_t kLongest = 3600'000;
  std::array<pollfd, 2> files{pollfd{fd, events, 0}, pollfd{other, POLLIN, 0}};
  poll(files.data(), files.size(), static_cast<int>(std::clamp<int64_t>(left, 0, kLongest)));
}

FdChannel::~FdChannel() { close(fd_); }

absl::StatusOr<size_t> FdChannel::Send(Bytes bytes) {
  const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (MustWait(errno)) return 0;
  return Gone(errno);
}

absl::StatusOr<size_t> FdChannel::Receive(std::span<std::byte> into) {
  const ssize_t n = recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0) return Gone(0);
  if (MustWait(errno)) return 0;
  return Gone(errno);
}

void FdChannel::Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) {
  PollUntil(fd_, static_cast<short>(to_send ? POLLIN | POLLOUT : POLLIN), other, until);
}

}  // namespace xenoscope::sampler
