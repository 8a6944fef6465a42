// A program that runs during a recording: xentrace, or the user's command.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// The end of a program.
struct Exit {
  int status = 0;  // exit status; 128 + the signal if a signal ended it
  int signal = 0;  // signal that ended it; 0: none
  [[nodiscard]] bool Succeeded() const { return status == 0; }
};
// Returns "ended with status 7", "was ended by SIGKILL".
std::string ToString(const Exit& exit);

// A started program.
class ChildProcess {
 public:
  struct StartOptions {
    // Whether it gets a process group of its own, which the terminal's Ctrl-C does not reach, and
    // is ended (SIGTERM) when this process ends.
    bool own_process_group = false;
    // The file descriptor for its standard output and standard error; -1: those of this process.
    int diagnostics = -1;
    // A file descriptor that it inherits under the same number; -1: none.
    int inherited = -1;
  };

  // Starts `words[0]`, looked up in PATH, with the signal mask and dispositions of a fresh program.
  // Errors: NotFound and others, as execvp reports them.
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
  // Kills the program if it still runs.
  ~ChildProcess();

  // Returns how it ended, or nothing while it runs.
  std::optional<Exit> Poll();
  // Returns the processor time that it has taken; after its end, all of it.
  [[nodiscard]] std::chrono::nanoseconds CpuTime() const;
  // Returns whether it waits for something other than room to write (proc_pid_syscall(5)), so that
  // no signal can interrupt a write. True, too, where the kernel does not say.
  [[nodiscard]] bool WaitsForEvents() const;
  // Sends SIGTERM, waits up to `timeout_ms` ms, then sends SIGKILL.
  Exit Stop(int timeout_ms);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  // Returns whether it has ended, and notes how. If `options` is 0, waits for the end.
  bool Reap(int options);

  pid_t pid_;
  std::optional<Exit> exit_;
  std::chrono::nanoseconds cpu_{0};  // set when it has ended
};

}  // namespace xenoscope::sampler
