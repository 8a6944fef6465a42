// A program that runs beside a recording: xentrace, or the command to be recorded.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// How a program ended.
struct Exit {
  int status = 0;  // exit status; of a program that a signal ended, 128 + the signal
  int signal = 0;  // that ended it; 0: none
  bool Succeeded() const { return status == 0; }
};
// "ended with status 7", "was ended by SIGKILL".
std::string ToString(const Exit& exit);

class ChildProcess {
 public:
  struct StartOptions {
    // In a process group of its own, where the terminal's Ctrl-C does not reach it, and ended
    // (SIGTERM) when this process dies.
    bool own_process_group = false;
    // A file descriptor for its standard output and standard error; -1: ours.
    int diagnostics = -1;
    // A file descriptor that it has open under the same number; -1: none.
    int inherited = -1;
  };

  // Starts `words[0]`, looked for in PATH, with the signal mask and dispositions of a fresh
  // program. Errors: NotFound and others, as execvp reports them.
  static absl::StatusOr<ChildProcess> Start(std::span<const std::string> words,
                                            const StartOptions& placement);

  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_), cpu_(other.cpu_) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(exit_, other.exit_);
    std::swap(cpu_, other.cpu_);
    return *this;
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Kills what still runs.
  ~ChildProcess();

  // How it ended, or nothing while it runs.
  std::optional<Exit> Poll();
  // The processor time that it has taken; at its end, all of it.
  std::chrono::nanoseconds CpuTime() const;
  // Whether it waits for something else than room to write (proc_pid_syscall(5)): no signal breaks
  // a write of its. True, too, where the kernel does not tell.
  bool WaitsForEvents() const;
  // Sends SIGTERM and waits up to `timeout_ms`, then SIGKILL.
  Exit Stop(int timeout_ms);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  // Whether it has ended, which is waited for if `options` is 0, and notes how.
  bool Reap(int options);

  pid_t pid_;
  std::optional<Exit> exit_;
  std::chrono::nanoseconds cpu_{0};  // when it has ended
};

}  // namespace xenoscope::sampler
