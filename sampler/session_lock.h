// The lock that allows one recording at a time on a host, with a note about what a killed one left
// running.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// A file (in /run, else /tmp) that is locked for the life of the process: xenoprof has one session
// for the host, and to recover it while another recorder has its buffers mapped would crash the
// host. The note in the file survives a kill and is erased by a regular end.
class SessionLock {
 public:
  // Takes the lock. Errors (FailedPrecondition): another recording is running; with its process,
  // where that is known.
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

  // Returns the note of the last holder if it was killed; empty after a regular end.
  [[nodiscard]] const std::string& stale_note() const { return stale_note_; }
  // Writes the note for the next holder; "" when all is given back.
  absl::Status WriteNote(std::string_view text) const;

 private:
  explicit SessionLock(int fd) : fd_(fd) {}

  int fd_;
  std::string stale_note_;
};

}  // namespace xenoscope::sampler
