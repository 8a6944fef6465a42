#include "sampler/agent/agent_relay.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "sampler/agent/fd_channel.h"

namespace xenoscope::sampler {
namespace {

// The interval between attempts to write to a reader that has no room.
constexpr auto kRelayPollInterval = std::chrono::milliseconds(10);
// Limit of reads in one direction, so that the other one gets its turn.
constexpr int kMaxReads = 4;

void AddToEpoll(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void RemoveFirst(std::vector<std::byte>& bytes, size_t count) {
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

AgentRelay::AgentRelay(std::unique_ptr<Channel> guest, int data, int control)
    : guest_(std::move(guest)),
      data_(data),
      control_(control),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
  AddToEpoll(epoll_fd_, data_);
  AddToEpoll(epoll_fd_, control_);
}

AgentRelay::~AgentRelay() {
  close(epoll_fd_);
  close(data_);
}

void AgentRelay::Move() {
  for (int i = 0; i < kMaxReads; ++i) MoveToReader();
  for (int i = 0; i < kMaxReads; ++i) MoveToGuest();
}

void AgentRelay::MoveToReader() {
  if (to_reader_.empty() && guest_ != nullptr) {
    to_reader_.resize(kBufferSize);
    const absl::StatusOr<size_t> came = guest_->Receive(to_reader_);
    to_reader_.resize(came.value_or(0));
    if (!came.ok()) guest_.reset();
  }
  if (!to_reader_.empty()) {
    const ssize_t n =
        send(data_, to_reader_.data(), to_reader_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) RemoveFirst(to_reader_, static_cast<size_t>(n));
    if (n < 0 && errno == EPIPE) to_reader_.clear();
  }
  if (guest_ == nullptr && to_reader_.empty() && !std::exchange(reader_notified_, true)) {
    shutdown(data_, SHUT_WR);
  }
}

void AgentRelay::MoveToGuest() {
  if (to_guest_.empty() && !reader_gone_) {
    to_guest_.resize(kBufferSize);
    const ssize_t n = recv(data_, to_guest_.data(), to_guest_.size(), MSG_DONTWAIT);
    to_guest_.resize(n > 0 ? static_cast<size_t>(n) : 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      reader_gone_ = true;
      epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, data_, nullptr);
    }
  }
  if (guest_ == nullptr) to_guest_.clear();
  if (!to_guest_.empty()) {
    const absl::StatusOr<size_t> went = guest_->Send(to_guest_);
    // What the guest sent can still be received.
    RemoveFirst(to_guest_, went.value_or(to_guest_.size()));
  }
  if (reader_gone_ && to_guest_.empty()) guest_.reset();
}

void AgentRelay::Wait(std::chrono::steady_clock::time_point until) {
  if (!to_reader_.empty()) {
    until = std::min(until, std::chrono::steady_clock::now() + kRelayPollInterval);
    PollUntil(data_, POLLOUT, control_, until);
  } else if (guest_ != nullptr) {
    guest_->Wait(HasWaiting(), until, epoll_fd_);
  } else {
    PollUntil(epoll_fd_, POLLIN, kNoFile, until);
  }
}

}  // namespace xenoscope::sampler
