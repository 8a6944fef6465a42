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

// The interval between attempts to write to a guest that has no room, while a reader has none.
constexpr auto kRelayPollInterval = std::chrono::milliseconds(10);
// Limit of reads in one direction, so that the other one gets its turn.
constexpr int kMaxReads = 4;

void AddToEpoll(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
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
  for (int i = 0; i < kMaxReads && MoveToReader(); ++i) {
  }
  for (int i = 0; i < kMaxReads && MoveToGuest(); ++i) {
  }
}

bool AgentRelay::MoveToReader() {
  if (to_reader_.Waiting().empty() && guest_ != nullptr) {
    const absl::StatusOr<size_t> came = guest_->Receive(to_reader_.Room());
    to_reader_.Put(came.value_or(0));
    if (!came.ok()) guest_.reset();
  }
  ssize_t passed = 0;
  if (const Bytes waiting = to_reader_.Waiting(); !waiting.empty()) {
    passed = send(data_, waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (passed > 0) to_reader_.Remove(static_cast<size_t>(passed));
    if (passed < 0 && errno == EPIPE) to_reader_.Clear();
  }
  if (guest_ == nullptr && to_reader_.Waiting().empty() && !std::exchange(reader_notified_, true)) {
    shutdown(data_, SHUT_WR);
  }
  return passed > 0;
}

bool AgentRelay::MoveToGuest() {
  if (to_guest_.Waiting().empty() && !reader_gone_) {
    const std::span<std::byte> room = to_guest_.Room();
    const ssize_t n = recv(data_, room.data(), room.size(), MSG_DONTWAIT);
    to_guest_.Put(n > 0 ? static_cast<size_t>(n) : 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      reader_gone_ = true;
      epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, data_, nullptr);
    }
  }
  if (guest_ == nullptr) to_guest_.Clear();
  size_t passed = 0;
  if (const Bytes waiting = to_guest_.Waiting(); !waiting.empty()) {
    // What the guest sent can still be received.
    passed = guest_->Send(waiting).value_or(waiting.size());
    to_guest_.Remove(passed);
  }
  if (reader_gone_ && to_guest_.Waiting().empty()) guest_.reset();
  return passed > 0;
}

void AgentRelay::Wait(std::chrono::steady_clock::time_point until) {
  if (!to_reader_.Waiting().empty()) {
    if (HasWaiting()) {
      until = std::min(until, std::chrono::steady_clock::now() + kRelayPollInterval);
    }
    const bool reads = !HasWaiting() && !reader_gone_;
    PollUntil(data_, static_cast<short>(reads ? POLLIN | POLLOUT : POLLOUT), control_, until);
  } else if (guest_ != nullptr) {
    guest_->Wait(HasWaiting(), until, epoll_fd_);
  } else {
    PollUntil(epoll_fd_, POLLIN, kNoFile, until);
  }
}

}  // namespace xenoscope::sampler
