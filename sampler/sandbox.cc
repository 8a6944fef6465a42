#include "sampler/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <mutex>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "sampler/sandbox_filter.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr bool kLimitsMemory = false;  // the sanitizer reserves more than any limit
#else
constexpr bool kLimitsMemory = true;
#endif

constexpr uid_t kNobodyUid = 65534;
constexpr int kFirstFree = 3;  // first file descriptor after the standard files
constexpr int kTimeoutMs = 10'000;

// The first message of the new process: what it could not give up, if anything.
struct StartReport {
  std::array<char, 24> what{};
  int32_t error = 0;
  uint32_t filtered = 0;
};

// Until Confine, the new process makes system calls only, which is safe after fork(2) with other
// threads running.

void CloseAll(unsigned first, unsigned last) {
  if (first > last || close_range(first, last, 0) == 0) return;
  struct rlimit open_files {};  // before Linux 5.9
  getrlimit(RLIMIT_NOFILE, &open_files);
  const auto end = std::min<uint64_t>(uint64_t{last} + 1, open_files.rlim_cur);
  for (uint64_t fd = first; fd < end; ++fd) close(static_cast<int>(fd));
}

bool CloseOthers(const SandboxRequest& request, int socket, int& highest) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return false;
  for (int fd = 0; fd < kFirstFree; ++fd) dup2(null, fd);
  int kept = kFirstFree - 1;
  while (true) {  // from each file that is kept to the next one
    int next = socket > kept ? socket : std::numeric_limits<int>::max();
    for (const int fd : request.files) {
      if (fd > kept) next = std::min(next, fd);
    }
    CloseAll(static_cast<unsigned>(kept) + 1, static_cast<unsigned>(next) - 1);
    if (next == std::numeric_limits<int>::max()) break;
    kept = next;
  }
  highest = kept;
  return true;
}

void ResetSignals() {
  for (const int number : {SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGCHLD, SIGXFSZ}) {
    (void)std::signal(number, SIG_DFL);
  }
  for (const int number : {SIGINT, SIGHUP, SIGPIPE}) (void)std::signal(number, SIG_IGN);
}

bool Limit(__rlimit_resource what, uint64_t most) {
  const struct rlimit limit { most, most };
  return setrlimit(what, &limit) == 0;
}

// Comes first, while the process may still do it: raising a hard limit takes root.
bool LimitResources(const SandboxRequest& request, int highest) {
  const auto files = static_cast<uint64_t>(highest) + 1 + static_cast<uint64_t>(request.more_files);
  return Limit(RLIMIT_CORE, 0) && Limit(RLIMIT_FSIZE, 0) && Limit(RLIMIT_NOFILE, files) &&
         Limit(RLIMIT_MEMLOCK, 0) && (!kLimitsMemory || Limit(RLIMIT_DATA, request.memory_bytes));
}

// These are bare system calls: the C library's would signal other threads.
bool ChangeUser() {
  return geteuid() != 0 || (syscall(SYS_setgroups, 0, nullptr) == 0 &&
                            syscall(SYS_setresgid, kNobodyUid, kNobodyUid, kNobodyUid) == 0 &&
                            syscall(SYS_setresuid, kNobodyUid, kNobodyUid, kNobodyUid) == 0);
}

bool DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return syscall(SYS_capset, &header, none.data()) == 0;
}

// Returns the name of the step that failed, with errno; null: the process has no privileges any
// more.
const char* Confine(const SandboxRequest& request, int socket, bool& filtered) {
  const pid_t parent = getppid();
  setsid();  // fails if it leads its session already
  ResetSignals();
  int highest = 0;
  if (!CloseOthers(request, socket, highest)) return "/dev/null";
  if (!LimitResources(request, highest)) return "setrlimit";
  if (!ChangeUser()) return "setresuid";
  if (!DropCapabilities()) return "capset";
  if (!Limit(RLIMIT_NPROC, 0)) return "setrlimit NPROC";  // root would have no such limit
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return "PR_SET_DUMPABLE";
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "PR_SET_PDEATHSIG";
  if (getppid() != parent) _exit(1);  // the parent ended before
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "PR_SET_NO_NEW_PRIVS";
  std::array<sock_filter, kSandboxFilter.size()> copy = kSandboxFilter;
  const sock_fprog program{static_cast<uint16_t>(copy.size()), copy.data()};
  filtered = request.filter && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
  if (!filtered && request.filter && errno != ENOSYS && errno != EINVAL) return "seccomp";
  return nullptr;
}

[[noreturn]] void Become(const SandboxRequest& request, int socket,
                         absl::FunctionRef<void(int)> body) {
  StartReport report;
  bool filtered = false;
  if (const char* failed = Confine(request, socket, filtered)) {
    report.error = errno;
    for (size_t i = 0; i + 1 < report.what.size() && failed[i] != 0; ++i)
      report.what[i] = failed[i];
  }
  report.filtered = filtered ? 1 : 0;
  const bool told = send(socket, &report, sizeof report, MSG_NOSIGNAL) == sizeof report;
  if (told && report.error == 0) body(socket);
  _exit(0);
}

bool ReadReport(int socket, StartReport& report) {
  pollfd wait{socket, POLLIN, 0};
  return poll(&wait, 1, kTimeoutMs) == 1 &&
         recv(socket, &report, sizeof report, MSG_WAITALL) == sizeof report;
}

std::chrono::nanoseconds TimeOf(const struct timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

// Returns the processor time of a process that was not waited for yet.
std::chrono::nanoseconds UsedBy(pid_t pid) {
  clockid_t clock = 0;
  struct timespec now {};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0) return {};
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// The processor time of all sandboxes.
class CpuAccount {
 public:
  void Add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    running_.push_back(pid);
  }
  void Remove(pid_t pid, const struct rusage& used) {
    const std::lock_guard lock(mutex_);
    std::erase(running_, pid);
    ended_ += TimeOf(used.ru_utime) + TimeOf(used.ru_stime);
  }
  std::chrono::nanoseconds Sum() {
    const std::lock_guard lock(mutex_);
    std::chrono::nanoseconds sum = ended_;
    for (const pid_t pid : running_) sum += UsedBy(pid);
    return sum;
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> running_;
  std::chrono::nanoseconds ended_{0};
};

CpuAccount& Account() {
  static CpuAccount account;
  return account;
}

// Returns a descriptor above the standard files, which may be closed here and are replaced in the
// child.
int AboveStandardFiles(int fd) {
  if (fd >= kFirstFree) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
  close(fd);
  return moved;
}

}  // namespace

absl::StatusOr<Sandbox> Sandbox::Start(const SandboxRequest& request,
                                       absl::FunctionRef<void(int)> body) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return ErrnoError(errno, "cannot connect to a process without privileges");
  }
  for (int& end : ends) end = AboveStandardFiles(end);
  const pid_t pid = fork();
  if (pid == 0) Become(request, ends[1], body);
  const int error = errno;
  close(ends[1]);
  Sandbox sandbox(pid, ends[0]);
  if (pid > 0) Account().Add(pid);
  if (pid < 0) return ErrnoError(error, "cannot start a process without privileges");
  StartReport report;
  if (!ReadReport(sandbox.socket_, report)) {
    return InternalError("a process without privileges did not start: {}", sandbox.End());
  }
  if (report.error != 0) {
    return ErrnoError(report.error, "a process cannot give up its privileges: {}",
                      report.what.data());
  }
  sandbox.filtered_ = report.filtered != 0;
  return sandbox;
}

std::chrono::nanoseconds Sandbox::Used() const { return UsedBy(pid_); }

bool Sandbox::IsRunnable() const {
  // proc_pid_stat(5): "PID (name) S ..."; the name has any characters.
  const std::string stat = ReadSmallFile(fmt::format("/proc/{}/stat", pid_)).value_or("");
  return absl::StartsWith(stat.substr(std::min(stat.size(), stat.rfind(')'))), ") R");
}

std::chrono::nanoseconds Sandbox::CpuTime() { return Account().Sum(); }

std::string Sandbox::End() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (pid_ <= 0) return "it has ended";
  kill(pid_, SIGKILL);  // has no effect on a process that is ending
  int status = 0;
  struct rusage used {};
  pid_t ended = 0;
  do {
    ended = wait4(pid_, &status, 0, &used);
  } while (ended < 0 && errno == EINTR);
  Account().Remove(std::exchange(pid_, -1), used);
  if (ended < 0 || !WIFSIGNALED(status)) return "it has ended";
  const int number = WTERMSIG(status);
  return number == SIGKILL ? "it was killed" : fmt::format("it ended by signal {}", number);
}

}  // namespace xenoscope::sampler
