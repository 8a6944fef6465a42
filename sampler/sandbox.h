// A process without privileges for code that reads untrusted input: an attacker who exploits a
// defect there gains a process that can only answer wrongly.
//
// The code has the files that it was given, the socket to this process, its memory, the clocks, and
// nothing else. In this order the process gives up: the terminal; every other open file; its user
// and groups, if it is root (it becomes nobody, 65534); its capabilities; by resource limits, new
// processes, bytes in files, core dumps; new privileges and inspection by other processes of its
// user (prctl(2): PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE); and all system calls that
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
  uint64_t memory_bytes = uint64_t{1} << 30;  // limit of data, in bytes (setrlimit(2), RLIMIT_DATA)
  std::span<const int> files;                 // open files that it keeps, under their numbers
  int more_files = 1;                         // number of files that it may have open beside those
  bool filter = true;                         // false: as on a kernel that has no seccomp(2)
};

// The process.
class Sandbox {
 public:
  // Calls body(socket) in the new process, which ends when it returns. While other threads run,
  // `body` must not allocate memory or take locks, which they may hold at this moment. Errors: no
  // process can be made, or a privilege cannot be given up.
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

  // Returns this process's end of the connection, a stream (unix(7)).
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Returns whether its system calls are restricted; false: the kernel has no seccomp(2).
  [[nodiscard]] bool filtered() const { return filtered_; }
  // Returns its processor time so far.
  [[nodiscard]] std::chrono::nanoseconds Used() const;
  // Returns whether it runs or waits for a processor, and not for anything else.
  [[nodiscard]] bool IsRunnable() const;
  // Returns the processor time of all sandboxes of this process so far, including those that have
  // ended. May be called at any time by any thread.
  static std::chrono::nanoseconds CpuTime();
  // Kills it, if it still runs. Returns how it ended, for a message: "it ended by signal 11".
  std::string End();

 private:
  Sandbox(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
  bool filtered_ = false;
};

}  // namespace xenoscope::sampler
