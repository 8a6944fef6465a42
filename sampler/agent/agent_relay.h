// Passes bytes on between a guest's channel and the process that reads them
// (sampler/agent/agent_worker.h), without looking at them.
//
//   guest --channel--> [ at most kBufferSize bytes ] --socket--> reader
//         <-----------                         <---------
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "sampler/agent/channel.h"

namespace xenoscope::sampler {

class AgentRelay {
 public:
  static constexpr size_t kBufferSize = size_t{64} << 10;

  // Takes the guest's channel and the sockets: `data` carries its bytes, and `control` is only
  // waited for.
  AgentRelay(std::unique_ptr<Channel> guest, int data, int control);
  AgentRelay(const AgentRelay&) = delete;
  AgentRelay& operator=(const AgentRelay&) = delete;
  // Closes the channel and `data`.
  ~AgentRelay();

  // Passes on what there is and has room, without waiting. When one side goes, the other finds its
  // end closed after the bytes that came before.
  void Move();
  // Sleeps until something can be passed on, or `control` can be read; until `until` at the latest.
  // It may return before anything happened.
  void Wait(std::chrono::steady_clock::time_point until);
  // Whether bytes to the guest wait for room.
  bool HasWaiting() const { return !to_guest_.empty(); }

 private:
  void MoveToReader();
  void MoveToGuest();

  std::unique_ptr<Channel> guest_;  // null when it has gone
  int data_;
  int control_;
  int epoll_fd_;  // epoll(7): data_ or control_ can be read
  bool reader_gone_ = false;
  bool reader_notified_ = false;  // that the guest has gone
  std::vector<std::byte> to_reader_;
  std::vector<std::byte> to_guest_;
};

}  // namespace xenoscope::sampler
