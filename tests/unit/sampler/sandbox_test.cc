// What code can do in a sandbox that an attacker has taken over: each test tries.
#include "sampler/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <string>
#include <vector>

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;

constexpr size_t kPage = 4096;

// Returns 0, or errno.
int32_t ErrorOf(long result) { return result < 0 ? errno : 0; }

struct Attempt {
  const char* what;
  // 0, or errno. `parent` is the process that started this one.
  int32_t (*make)(pid_t parent);
};

int32_t Fork(pid_t /*parent*/) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  const int32_t error = ErrorOf(pid);
  if (pid > 0) waitpid(pid, nullptr, 0);
  return error;
}

int32_t Execute(pid_t /*parent*/) {
  std::array<char*, 1> none{nullptr};
  return ErrorOf(execve("/no/such/program", none.data(), none.data()));
}

int32_t MapCode(pid_t /*parent*/) {
  void* const at = mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? errno : 0;
}

int32_t MakeCode(pid_t /*parent*/) {
  void* const at = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 0;  // that is to work
  return ErrorOf(mprotect(at, kPage, PROT_READ | PROT_EXEC));
}

int32_t Trace(pid_t parent) {
  const int32_t error = ErrorOf(ptrace(PTRACE_SEIZE, parent, nullptr, nullptr));
  return error;
}

int32_t ReadMemory(pid_t parent) {
  std::array<char, 1> byte{};
  iovec own{byte.data(), byte.size()};
  iovec other = own;
  return ErrorOf(process_vm_readv(parent, &own, 1, &other, 1, 0));
}

int32_t Limit(pid_t parent) {
  rlimit64 now{};
  return ErrorOf(prlimit64(parent, RLIMIT_CORE, nullptr, &now));
}

int32_t SignalItself(pid_t /*parent*/) { return ErrorOf(kill(getpid(), 0)); }

// The attempts: all ways to a file, to another machine or to another process.
constexpr Attempt kAttempts[] = {
    {"open", [](pid_t) { return ErrorOf(open("/etc/passwd", O_RDONLY)); }},
    {"open, the old call",
     [](pid_t) { return ErrorOf(syscall(SYS_open, "/etc/passwd", O_RDONLY)); }},
    {"create a file", [](pid_t) { return ErrorOf(open("/tmp", O_TMPFILE | O_RDWR, 0600)); }},
    {"look at a file",
     [](pid_t) {
       struct stat info {};
       return ErrorOf(stat("/etc/passwd", &info));
     }},
    {"remove a file", [](pid_t) { return ErrorOf(unlink("/no/such/file")); }},
    {"memory as a file", [](pid_t) { return ErrorOf(memfd_create("file", 0)); }},
    {"pipe",
     [](pid_t) {
       std::array<int, 2> ends{};
       return ErrorOf(pipe(ends.data()));
     }},
    {"socket of IP", [](pid_t) { return ErrorOf(socket(AF_INET, SOCK_STREAM, 0)); }},
    {"socket of this machine", [](pid_t) { return ErrorOf(socket(AF_UNIX, SOCK_DGRAM, 0)); }},
    {"socket of the kernel", [](pid_t) { return ErrorOf(socket(AF_NETLINK, SOCK_RAW, 0)); }},
    {"connect",
     [](pid_t) {
       const sockaddr to{AF_UNSPEC, {}};
       return ErrorOf(connect(99, &to, sizeof to));
     }},
    {"signal its parent", [](pid_t parent) { return ErrorOf(kill(parent, 0)); }},
    {"signal all", [](pid_t) { return ErrorOf(kill(-1, 0)); }},
    {"signal itself", SignalItself},
    {"signal a thread",
     [](pid_t parent) { return ErrorOf(syscall(SYS_tgkill, parent, parent, 0)); }},
    {"hold a process", [](pid_t parent) { return ErrorOf(syscall(SYS_pidfd_open, parent, 0)); }},
    {"trace its parent", Trace},
    {"read its parent's memory", ReadMemory},
    {"its parent's limits", Limit},
    {"fork", Fork},
    {"execute a program", Execute},
    {"map memory to be executed", MapCode},
    {"make memory executable", MakeCode},
    {"become root", [](pid_t) { return ErrorOf(syscall(SYS_setresuid, 0, 0, 0)); }},
    {"enter a namespace", [](pid_t) { return ErrorOf(unshare(0)); }},
    {"mount", [](pid_t) { return ErrorOf(umount2("/no/such/place", 0)); }},
    {"io_uring", [](pid_t) { return ErrorOf(syscall(SYS_io_uring_setup, 0, nullptr)); }},
    {"bpf", [](pid_t) { return ErrorOf(syscall(SYS_bpf, -1, nullptr, 0)); }},
    {"ioctl", [](pid_t) { return ErrorOf(syscall(SYS_ioctl, 99, 0, 0)); }},
    {"the limits of its own",
     [](pid_t) {
       const struct rlimit none { 0, 0 };
       return ErrorOf(setrlimit(RLIMIT_CORE, &none));
     }},
};
constexpr size_t kCount = std::size(kAttempts);
using Results = std::array<int32_t, kCount>;

void MakeAttempts(int socket, pid_t parent) {
  Results results{};
  for (size_t i = 0; i < kCount; ++i) results[i] = kAttempts[i].make(parent);
  EXPECT_EQ(send(socket, results.data(), sizeof results, 0), sizeof results);
}

Results Receive(int socket) {
  Results results{};
  results.fill(-1);
  EXPECT_EQ(recv(socket, results.data(), sizeof results, MSG_WAITALL), sizeof results);
  return results;
}

TEST(SandboxTest, DeniesEverythingElse) {
  const pid_t parent = getpid();
  auto sandbox = Sandbox::Start({}, [parent](int socket) { MakeAttempts(socket, parent); });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  if (!sandbox->filtered()) GTEST_SKIP() << "this kernel has no seccomp";
  const Results results = Receive(sandbox->socket());
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(results[i], EPERM) << kAttempts[i].what;
}

// The same attempts fail for other reasons, or not at all, outside: so the table above means
// something.
TEST(SandboxTest, SameCallsWorkOutside) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone may do all of it";
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    MakeAttempts(ends[1], parent);
    _exit(0);
  }
  const Results results = Receive(ends[0]);
  waitpid(pid, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  for (size_t i = 0; i < kCount; ++i) EXPECT_NE(results[i], EPERM) << kAttempts[i].what;
}

// Without the filter the process still runs as a user without privileges.
TEST(SandboxTest, RunsAsNobodyWithoutFilter) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can become nobody";
  struct Found {
    std::array<uid_t, 3> user{};
    std::array<gid_t, 3> group{};
    int32_t groups = 0;
    std::array<int32_t, 7> errors{};
    bool operator==(const Found&) const = default;
  };
  const pid_t parent = getpid();
  auto sandbox = Sandbox::Start({.files = {}, .filter = false}, [parent](int socket) {
    Found found;
    getresuid(&found.user[0], &found.user[1], &found.user[2]);
    getresgid(&found.group[0], &found.group[1], &found.group[2]);
    found.groups = getgroups(0, nullptr);
    found.errors = {ErrorOf(open("/etc/shadow", O_RDONLY)),
                    ErrorOf(kill(parent, 0)),
                    ErrorOf(ptrace(PTRACE_SEIZE, parent, nullptr, nullptr)),
                    Fork(parent),
                    ErrorOf(setuid(0)),
                    ErrorOf(chroot("/")),
                    ErrorOf(open("/proc/self/mem", O_RDWR))};
    EXPECT_EQ(send(socket, &found, sizeof found, 0), sizeof found);
  });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  EXPECT_FALSE(sandbox->filtered());
  Found found;
  ASSERT_EQ(recv(sandbox->socket(), &found, sizeof found, MSG_WAITALL), sizeof found);
  EXPECT_THAT(found.user, testing::Each(65534));
  EXPECT_THAT(found.group, testing::Each(65534));
  EXPECT_EQ(found.groups, 0);
  EXPECT_THAT(found.errors,
              testing::ElementsAre(EACCES, EPERM, EPERM, EAGAIN, EPERM, EPERM, EACCES));
}

TEST(SandboxTest, HasOnlyTheGivenFiles) {
  std::array<int, 2> kept{};
  std::array<int, 2> other{};
  ASSERT_EQ(pipe(kept.data()), 0);
  ASSERT_EQ(pipe(other.data()), 0);
  const std::array<int, 1> files{kept[1]};
  struct Found {
    int32_t kept, other, own_end;
  };
  auto sandbox = Sandbox::Start({.files = files}, [&](int socket) {
    const Found found{ErrorOf(write(kept[1], "x", 1)), ErrorOf(write(other[1], "x", 1)),
                      ErrorOf(write(socket + 40, "x", 1))};
    EXPECT_EQ(send(socket, &found, sizeof found, 0), sizeof found);
  });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  Found found{};
  ASSERT_EQ(recv(sandbox->socket(), &found, sizeof found, MSG_WAITALL), sizeof found);
  EXPECT_EQ(found.kept, 0);
  EXPECT_EQ(found.other, EBADF);
  EXPECT_EQ(found.own_end, EBADF);
  for (const int fd : {kept[0], kept[1], other[0], other[1]}) close(fd);
}

// getpid(2) of the 32-bit ABI, in which numbers mean other calls: 5 would be open.
long CallOfOtherAbi() {
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory");
  return result;
}

// Whether the kernel has that ABI: one without it ends a program that uses it by SIGSEGV.
bool HasOtherAbi() {
  const pid_t child = fork();
  if (child == 0) _exit(CallOfOtherAbi() > 0 ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SandboxTest, CallsOfOtherAbiKillIt) {
  if (!HasOtherAbi()) GTEST_SKIP() << "this kernel has no 32-bit calls";
  auto sandbox = Sandbox::Start({}, [](int socket) {
    const long result = CallOfOtherAbi();
    EXPECT_EQ(send(socket, &result, sizeof result, 0), sizeof result);
  });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  if (!sandbox->filtered()) GTEST_SKIP() << "this kernel has no seccomp";
  long result = 0;
  EXPECT_EQ(recv(sandbox->socket(), &result, sizeof result, MSG_WAITALL), 0);
  EXPECT_EQ(sandbox->End(), "it ended by signal 31");  // SIGSYS
}

TEST(SandboxTest, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    auto sandbox = Sandbox::Start({}, [](int socket) {
      std::array<char, 1> byte{};
      (void)!read(socket, byte.data(), byte.size());
      while (true) poll(nullptr, 0, -1);  // even when it does not want to
    });
    ASSERT_TRUE(sandbox.ok()) << sandbox.status();
    pid = sandbox->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(SandboxTest, ReportsCpuTime) {
  const auto before = Sandbox::CpuTime();
  static constexpr std::chrono::milliseconds kWork(20);
  auto sandbox = Sandbox::Start({}, [](int socket) {
    struct timespec used {};
    do {
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < std::chrono::nanoseconds(kWork).count());
    (void)!write(socket, "x", 1);
    poll(nullptr, 0, -1);
  });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  std::array<char, 1> byte{};
  ASSERT_EQ(read(sandbox->socket(), byte.data(), byte.size()), 1);
  EXPECT_GE(Sandbox::CpuTime() - before, kWork);
  sandbox->End();
  EXPECT_GE(Sandbox::CpuTime() - before, kWork - std::chrono::milliseconds(4));  // by ticks
}

TEST(SandboxTest, SaysWhetherItIsRunnable) {
  auto sandbox = Sandbox::Start({}, [](int socket) {
    char byte = 0;
    (void)!read(socket, &byte, 1);
    while (true) byte = static_cast<char>(byte + 1);
  });
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  while (sandbox->IsRunnable()) poll(nullptr, 0, 1);  // until it waits for the byte
  EXPECT_LT(sandbox->Used(), std::chrono::seconds(1));
  ASSERT_EQ(write(sandbox->socket(), "x", 1), 1);
  while (!sandbox->IsRunnable()) poll(nullptr, 0, 1);
  sandbox->End();
  EXPECT_FALSE(sandbox->IsRunnable());
}

TEST(SandboxTest, ReportsItsEnd) {
  auto crashes = Sandbox::Start({}, [](int) { __builtin_trap(); });
  ASSERT_TRUE(crashes.ok()) << crashes.status();
  std::array<char, 1> byte{};
  EXPECT_EQ(read(crashes->socket(), byte.data(), byte.size()), 0);
  EXPECT_THAT(crashes->End(), HasSubstr("signal 4"));
}

}  // namespace
}  // namespace xenoscope::sampler
