// One recording at a time on a host, and what a killed one may have left running.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// Holds a file (in /run, else /tmp) locked for the life of the process: xenoprof has one session
// for the host, and recovering it while another recorder has its buffers mapped would take the host
// down. What is noted in the file outlives a kill and is erased by a good end.
class SessionLock {
 public:
  // Errors (FailedPrecondition): another recording goes on; with its process, where that is known.
  static absl::StatusOr<SessionLock> Take();
  static absl::StatusOr<SessionLock> TakeAt(const std::string& path);

  SessionLock(SessionLock&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), stale_note_(std::move(other.stale_note_)) {}
  SessionLock& operator=(SessionLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(stale_note_, other.stale_note_);
    return *this;
  }
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;
  ~SessionLock();

  // What the last holder had noted when it was killed; empty after a good end.
  const std::string& stale_note() const { return stale_note_; }
  // Notes something for the next holder; "" when all is given back.
  absl::Status WriteNote(std::string_view text) const;

 private:
  explicit SessionLock(int fd) : fd_(fd) {}

  int fd_;
  std::string stale_note_;
};

}  // namespace xenoscope::sampler
