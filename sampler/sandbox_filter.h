// The system calls that a sandbox may make (sampler/sandbox.h): a program for seccomp(2). A call
// that is not listed fails with EPERM; a call by another ABI than x86-64's (i386, x32), whose
// numbers mean other calls, ends the process.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/base/config.h"

namespace xenoscope::sampler {

namespace sandbox_filter {

// The allowed calls: reading, writing and waiting on open files; memory; time; the process's own
// signal mask; the end.
inline constexpr std::array kAllowed{
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
    SYS_sigaltstack,  // the sanitizer calls it before each call that does not return
#endif
    SYS_read,         SYS_write,
    SYS_close,        SYS_pread64,
    SYS_poll,         SYS_ppoll,
    SYS_recvfrom,     SYS_sendto,
    SYS_recvmsg,      SYS_brk,
    SYS_munmap,       SYS_mremap,
    SYS_madvise,      SYS_futex,
    SYS_sched_yield,  SYS_clock_gettime,
    SYS_gettimeofday, SYS_time,
    SYS_nanosleep,    SYS_clock_nanosleep,
    SYS_getrandom,    SYS_getpid,
    SYS_gettid,       SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_restart_syscall,
    SYS_exit,         SYS_exit_group};

constexpr sock_filter Statement(int code, uint32_t value) {
  return {static_cast<uint16_t>(code), 0, 0, value};
}
// Skips `then` instructions if the test holds, else `otherwise` instructions.
constexpr sock_filter Jump(int test, uint32_t value, uint8_t then, uint8_t otherwise) {
  return {static_cast<uint16_t>(BPF_JMP | test | BPF_K), then, otherwise, value};
}
constexpr sock_filter LoadWord(size_t offset) {
  return Statement(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
constexpr sock_filter Return(uint32_t action) { return Statement(BPF_RET | BPF_K, action); }

inline constexpr uint32_t kFirstX32Call = 0x4000'0000;  // __X32_SYSCALL_BIT in asm/unistd.h
inline constexpr size_t kThirdArgument = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);

constexpr auto Make() {
  constexpr size_t kBefore = 6;
  constexpr size_t kAfter = 6;
  std::array<sock_filter, kBefore + 2 * kAllowed.size() + kAfter> program{};
  size_t at = 0;
  const auto add = [&](sock_filter instruction) { program[at++] = instruction; };
  add(LoadWord(offsetof(seccomp_data, arch)));
  add(Jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0));
  add(Return(SECCOMP_RET_KILL_PROCESS));
  add(LoadWord(offsetof(seccomp_data, nr)));
  add(Jump(BPF_JGE, kFirstX32Call, 0, 1));
  add(Return(SECCOMP_RET_KILL_PROCESS));
  for (const long call : kAllowed) {
    add(Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 1));
    add(Return(SECCOMP_RET_ALLOW));
  }
  // Memory is allowed unless it is executable.
  add(Jump(BPF_JEQ, SYS_mmap, 1, 0));
  add(Jump(BPF_JEQ, SYS_mprotect, 0, 3));
  add(LoadWord(kThirdArgument));
  add(Jump(BPF_JSET, PROT_EXEC, 1, 0));
  add(Return(SECCOMP_RET_ALLOW));
  add(Return(SECCOMP_RET_ERRNO | EPERM));
  return program;
}

}  // namespace sandbox_filter

inline constexpr auto kSandboxFilter = sandbox_filter::Make();

}  // namespace xenoscope::sampler
