// A relay of bytes between a guest's channel and the process that reads them
// (sampler/agent/agent_worker.h). It does not look at the bytes.
//
//   guest --channel--> [ at most kBufferSize bytes ] --socket--> reader
//         <-----------                         <---------
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "sampler/agent/channel.h"

namespace xenoscope::sampler {

class AgentRelay {
 public:
  static constexpr size_t kBufferSize = size_t{64} << 10;

  // Takes the guest's channel, and two sockets: `data` carries the guest's bytes, and Wait also
  // waits for `control`.
  AgentRelay(std::unique_ptr<Channel> guest, int data, int control);
  AgentRelay(const AgentRelay&) = delete;
  AgentRelay& operator=(const AgentRelay&) = delete;
  // Closes the channel and `data`.
  ~AgentRelay();

  // Passes on what has come and has room, without waiting. When one side closes, the other one is
  // closed after the bytes that came before.
  void Move();
  // Sleeps until something can be passed on, `control` can be read, or `until`. It may return
  // before that.
  void Wait(std::chrono::steady_clock::time_point until);
  // Returns whether bytes to the guest wait for room.
  [[nodiscard]] bool HasWaiting() const { return !to_guest_.Waiting().empty(); }

 private:
  // Bytes that have come from one side and wait for the other one.
  class Buffer {
   public:
    [[nodiscard]] Bytes Waiting() const { return Bytes(bytes_).subspan(begin_, end_ - begin_); }
    // Returns where bytes may be put, once none wait.
    [[nodiscard]] std::span<std::byte> Room() { return bytes_; }
    void Put(size_t count) {
      begin_ = 0;
      end_ = count;
    }
    void Remove(size_t count) { begin_ += count; }
    void Clear() { begin_ = end_; }

   private:
    std::vector<std::byte> bytes_ = std::vector<std::byte>(kBufferSize);
    size_t begin_ = 0;
    size_t end_ = 0;
  };

  // Return whether bytes were passed on.
  bool MoveToReader();
  bool MoveToGuest();

  std::unique_ptr<Channel> guest_;  // null when the guest has gone
  int data_;
  int control_;
  int epoll_fd_;  // an epoll(7) file: data_ or control_ can be read
  bool reader_gone_ = false;
  bool reader_notified_ = false;  // whether the reader knows that the guest has gone
  Buffer to_reader_;
  Buffer to_guest_;
};

}  // namespace xenoscope::sampler
