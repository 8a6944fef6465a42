// The records of a perf ring (linux/perf_event.h, enum perf_event_type), in the form that the perf
// source requests: kSampleType, with sample_id_all.
#pragma once

#include <linux/perf_event.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/mode.h"
#include "base/user_registers.h"

namespace xenoscope::sampler {

// The registers of user mode that samples have, as bits of PERF_REG_X86_* (asm/perf_regs.h): all
// that are in UserRegisters.
inline constexpr uint64_t kPerfUserRegisters = 0xff01ff;

inline constexpr uint64_t kPerfSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                            PERF_SAMPLE_PERIOD;

// In all records `time` is perf's clock, in ns.
struct PerfSample {
  uint64_t id = 0;  // id of the event that took it
  Mode mode = Mode::kKernel;
  // Whether it is of a guest of this Linux (a host, or dom0), not of this Linux.
  bool of_guest = false;
  Address address = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time = 0;
  uint32_t cpu = 0;
  uint64_t period = 0;  // counts since the sample before
  // Addresses of 8 bytes, with marks of contexts, if PERF_SAMPLE_CALLCHAIN is requested.
  Bytes chain;
  // If PERF_SAMPLE_BRANCH_STACK is requested: branches, the last one first, in kBranchBytes each
  // (struct perf_branch_entry: addresses from and to, flags).
  Bytes branches;
  // If PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER are requested: whether the thread has a
  // user mode, the registers there (none of a 32-bit program), and the bytes of its stack from the
  // stack pointer on.
  bool has_user_mode = false;
  std::optional<UserRegisters> registers;
  Bytes stack;
};

// The parts of samples that not every event requests.
struct PerfSampleParts {
  bool chain = false;
  bool branches = false;
  bool stack = false;  // registers and stack of user mode
};

struct PerfName {
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool by_exec = false;
  std::string_view name;
  uint64_t time = 0;
};

struct PerfMap {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t offset = 0;
  Bytes build_id;      // empty when the kernel gives none
  uint64_t inode = 0;  // number of the file, where there is no build_id
  std::string_view path;
  uint64_t time = 0;
};

// The begin or end of a thread.
struct PerfTask {
  bool exit = false;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent = 0;
  uint64_t time = 0;
};

struct PerfLost {
  uint64_t samples = 0;
};

struct PerfThrottle {
  bool on = false;
};

struct PerfOther {};    // a record of another type
struct PerfInvalid {};  // a record shorter than its type requires

using PerfRecord = std::variant<PerfSample, PerfName, PerfMap, PerfTask, PerfLost, PerfThrottle,
                                PerfOther, PerfInvalid>;

// Reads a whole `record`, as PerfRing hands it out; the result points into it. `parts` are those of
// samples.
PerfRecord ReadPerfRecord(Bytes record, PerfSampleParts parts);

inline constexpr size_t kBranchBytes = 24;

// What a processor records of branches for call chains of user mode: calls that did not return yet.
inline constexpr uint64_t kPerfBranchesOfCalls =
    PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_NO_FLAGS |
    PERF_SAMPLE_BRANCH_NO_CYCLES;

// Calls `caller(address)` for each caller in user mode by such records, innermost first, with the
// address behind the first byte of its call. `with_called`: before these with the address to which
// the last call led. Ends at a record that is empty or not of user mode.
template <std::invocable<Address> F>
void ForEachCallerOfBranches(Bytes branches, bool with_called, F caller) {
  const auto is_user = [](Address address) { return address != 0 && address >> 63 == 0; };
  for (size_t at = 0; at + kBranchBytes <= branches.size(); at += kBranchBytes) {
    const auto from = LoadUnchecked<Address>(branches.data() + at);
    const auto to = LoadUnchecked<Address>(branches.data() + at + sizeof(Address));
    if (!is_user(from) || !is_user(to)) return;
    if (with_called && at == 0) caller(to);
    caller(from + 1);
  }
}

// Divides a chain at its marks of contexts: calls `caller(mode, address)` for each caller,
// innermost first, without the first address, which is the sample's own. Frames of contexts other
// than this kernel and its processes are left out. Returns the number of those.
template <std::invocable<Mode, Address> F>
uint64_t ForEachCaller(Bytes chain, F caller) {
  uint64_t others = 0;
  bool known = false;
  bool first = true;
  Mode mode = Mode::kKernel;
  for (size_t at = 0; at + sizeof(uint64_t) <= chain.size(); at += sizeof(uint64_t)) {
    const auto word = LoadUnchecked<uint64_t>(chain.data() + at);
    if (word >= PERF_CONTEXT_MAX) {
      known = word == PERF_CONTEXT_KERNEL || word == PERF_CONTEXT_USER;
      mode = word == PERF_CONTEXT_USER ? Mode::kUser : Mode::kKernel;
      continue;
    }
    if (first) {
      first = false;
      continue;
    }
    if (known) {
      caller(mode, word);
    } else {
      ++others;
    }
  }
  return others;
}

}  // namespace xenoscope::sampler
