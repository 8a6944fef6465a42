#include "sampler/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/signal_name.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::nanoseconds;

// Becomes the program, in the child between fork and exec, with async-signal-safe calls only.
// Writes the errno of a failure to `report`, which exec closes.
[[noreturn]] void Become(char* const* words, const ChildProcess::StartOptions& placement,
                         int report) {
  if (placement.own_process_group) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
  }
  if (placement.diagnostics >= 0) {
    dup2(placement.diagnostics, STDOUT_FILENO);
    dup2(placement.diagnostics, STDERR_FILENO);
  }
  if (placement.inherited >= 0) fcntl(placement.inherited, F_SETFD, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE, SIGXFSZ}) {
    (void)std::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(words[0], words);
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

nanoseconds TimeOf(const struct timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

Exit ExitOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {128 + WTERMSIG(wait_status), WTERMSIG(wait_status)};
  return {WEXITSTATUS(wait_status), 0};
}

}  // namespace

std::string ToString(const Exit& exit) {
  if (exit.signal == 0) return fmt::format("ended with status {}", exit.status);
  return "was ended by " + SignalName(exit.signal);
}

absl::StatusOr<ChildProcess> ChildProcess::Start(std::span<const std::string> words,
                                                 const StartOptions& placement) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): execvp does not write
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return ErrnoError(errno, "cannot start {}", words[0]);
  const pid_t pid = fork();
  if (pid == 0) Become(arguments.data(), placement, report[1]);
  const int fork_error = errno;
  close(report[1]);
  int error = pid < 0 ? fork_error : 0;
  ssize_t n = 0;
  if (pid > 0) {
    do {
      n = read(report[0], &error, sizeof error);
    } while (n < 0 && errno == EINTR);
  }
  close(report[0]);
  if (pid > 0 && n == sizeof error) waitpid(pid, nullptr, 0);
  if (pid < 0 || n == sizeof error) return ErrnoError(error, "cannot run {}", words[0]);
  return ChildProcess(pid);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !Poll()) {
    kill(pid_, SIGKILL);
    Reap(0);
  }
}

bool ChildProcess::Reap(int options) {
  int status = 0;
  struct rusage used {};
  if (wait4(pid_, &status, options, &used) != pid_) return false;
  exit_ = ExitOf(status);
  cpu_ = TimeOf(used.ru_utime) + TimeOf(used.ru_stime);
  return true;
}

std::optional<Exit> ChildProcess::Poll() {
  if (!exit_) Reap(WNOHANG);
  return exit_;
}

nanoseconds ChildProcess::CpuTime() const {
  clockid_t clock = 0;
  struct timespec now {};
  if (exit_ || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &now) != 0) {
    return cpu_;
  }
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

bool ChildProcess::WaitsForEvents() const {
  const auto text = ReadSmallFile(fmt::format("/proc/{}/syscall", pid_));
  if (!text) return true;
  const std::string_view call = std::string_view(*text).substr(0, text->find(' '));
  return call != "running" && call != std::to_string(SYS_write) &&
         call != std::to_string(SYS_writev);
}

Exit ChildProcess::Stop(int timeout_ms) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  if (!Poll()) kill(pid_, SIGTERM);
  while (!Poll()) {
    if (steady_clock::now() >= until) {
      kill(pid_, SIGKILL);
      Reap(0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return *exit_;
}

}  // namespace xenoscope::sampler
