// A process without privileges, in which code runs that reads what strangers wrote: a defect that
// such input exploits then gains a process that can do no more than answer wrongly.
//
// What runs there has the files that it was given and the socket to this process, its memory, the
// clocks and nothing else. In this order it gives up: the terminal; every other open file; its user
// and groups, when it is root (it becomes nobody, 65534); its capabilities; by limits of resources,
// new processes, bytes in files, core dumps; new privileges and inspection by others of its user
// (prctl(2): PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE); and all system calls that
// sampler/sandbox_filter.h does not list. It ends when this process does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace xenoscope::sampler {

struct SandboxRequest {
  uint64_t memory_bytes = uint64_t{1} << 30;  // of data (setrlimit(2), RLIMIT_DATA)
  std::span<const int> files;                 // open ones that it keeps, under their numbers
  int more_files = 1;                         // that it may have open beside those at one time
  bool filter = true;                         // false: as on a kernel that has no seccomp(2)
};

class Sandbox {
 public:
  // Calls body(socket) in the new process, which ends when it returns. Where other threads run,
  // `body` must not allocate memory or take locks, which they may hold at this moment. Errors: no
  // process can be made, or a privilege not be given up.
  static absl::StatusOr<Sandbox> Start(const SandboxRequest& request,
                                       absl::FunctionRef<void(int socket)> body);

  Sandbox(Sandbox&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        socket_(std::exchange(other.socket_, -1)),
        filtered_(other.filtered_) {}
  Sandbox& operator=(Sandbox&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(socket_, other.socket_);
    std::swap(filtered_, other.filtered_);
    return *this;
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() { End(); }

  // This process's end of the connection, a stream (unix(7)).
  int socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  // Whether its system calls are restricted; false: the kernel has no seccomp(2).
  bool filtered() const { return filtered_; }
  // The processor time that all sandboxes of this process have taken up to now, those that have
  // ended included. At any time, by any thread.
  static std::chrono::nanoseconds CpuTime();
  // Kills it, if it still runs. How it ended, for a message: "it ended by signal 11".
  std::string End();

 private:
  Sandbox(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
  bool filtered_ = false;
};

}  // namespace xenoscope::sampler
