// Builds sub-buffers of a Linux kernel's trace, and the formats of the events in them, as a kernel
// of 64 bits lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace xenoscope::guests {

// The number of sched_switch in kSwitchFormats.
inline constexpr uint16_t kSwitchId = 300;
inline constexpr uint16_t kWakingId = 301;
inline constexpr uint16_t kMigrateId = 302;
inline constexpr uint16_t kSyscallEnterId = 303;
inline constexpr uint16_t kSyscallExitId = 304;
inline constexpr uint16_t kIrqEntryId = 305;
inline constexpr uint16_t kIrqExitId = 306;
inline constexpr uint16_t kSoftirqEntryId = 307;
inline constexpr uint16_t kSoftirqExitId = 308;
inline constexpr uint16_t kContentionBeginId = 309;
inline constexpr uint16_t kContentionEndId = 310;
inline constexpr uint16_t kExitId = 311;
inline constexpr uint16_t kNewTaskId = 312;
inline constexpr uint16_t kFunctionCallId = 1;
inline constexpr uint16_t kFunctionReturnId = 10;
inline constexpr uint16_t kFunctionEntryId = 11;
// The state in sched_switch of a thread that sleeps and can be interrupted.
inline constexpr uint64_t kSleep = 1;

inline constexpr std::string_view kSwitchFormats =
    "# header_page\n"
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
    "# sched/sched_switch\n"
    "name: sched_switch\n"
    "ID: 300\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"next_pid=%d\", REC->next_pid\n"
    "# sched/sched_waking\n"
    "name: sched_waking\n"
    "ID: 301\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:int target_cpu;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"pid=%d\", REC->pid\n"
    "# sched/sched_migrate_task\n"
    "name: sched_migrate_task\n"
    "ID: 302\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:int dest_cpu;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
    "\n"
    "print fmt: \"pid=%d\", REC->pid\n"
    "# raw_syscalls/sys_enter\n"
    "name: sys_enter\n"
    "ID: 303\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\n"
    "print fmt: \"NR %ld\", REC->id\n"
    "# raw_syscalls/sys_exit\n"
    "name: sys_exit\n"
    "ID: 304\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n"
    "\n"
    "print fmt: \"NR %ld = %ld\", REC->id, REC->ret\n"
    "# irq/irq_handler_entry\n"
    "name: irq_handler_entry\n"
    "ID: 305\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\n"
    "print fmt: \"irq=%d\", REC->irq\n"
    "# irq/irq_handler_exit\n"
    "name: irq_handler_exit\n"
    "ID: 306\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"irq=%d\", REC->irq\n"
    "# irq/softirq_entry\n"
    "name: softirq_entry\n"
    "ID: 307\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\n"
    "print fmt: \"vec=%u\", REC->vec\n"
    "# irq/softirq_exit\n"
    "name: softirq_exit\n"
    "ID: 308\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\n"
    "print fmt: \"vec=%u\", REC->vec\n"
    "# lock/contention_begin\n"
    "name: contention_begin\n"
    "ID: 309\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\n"
    "print fmt: \"%p\", REC->lock_addr\n"
    "# lock/contention_end\n"
    "name: contention_end\n"
    "ID: 310\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"%p\", REC->lock_addr\n"
    "# sched/sched_process_exit\n"
    "name: sched_process_exit\n"
    "ID: 311\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"pid=%d\", REC->pid\n"
    "# task/task_newtask\n"
    "name: task_newtask\n"
    "ID: 312\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
    "\tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"pid=%d\", REC->pid\n";

// Those of the tracing of functions, as Linux 6.1 has them.
inline constexpr std::string_view kFunctionFormats =
    "# ftrace/funcgraph_entry\n"
    "name: funcgraph_entry\n"
    "ID: 11\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\n"
    "print fmt: \"--> %ps (%d)\", (void *)REC->func, REC->depth\n"
    "# ftrace/funcgraph_exit\n"
    "name: funcgraph_exit\n"
    "ID: 10\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int overrun;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, "
    "REC->depth, REC->calltime, REC->rettime, REC->depth\n"
    "# ftrace/function\n"
    "name: function\n"
    "ID: 1\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long parent_ip;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\n"
    "print fmt: \" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip\n";

// A sub-buffer in the making.
class PageBuilder {
 public:
  static constexpr size_t kHead = 16;
  static constexpr size_t kSize = 4096;

  explicit PageBuilder(uint64_t tsc) {
    Put(tsc, sizeof tsc);
    Put(0, sizeof(uint64_t));
  }

  // Adds an event whose length is in its type; `data` is a whole number of words, at most 28.
  PageBuilder& Event(uint32_t delta, std::span<const std::byte> data) {
    return Head(static_cast<uint32_t>(data.size() / 4), delta).Data(data);
  }
  // Adds an event whose length is in a word of its own.
  PageBuilder& LongEvent(uint32_t delta, std::span<const std::byte> data) {
    Head(0, delta).Put(data.size() + 4, 4);
    return Data(data);
  }
  PageBuilder& TimeExtend(uint64_t delta) {
    Head(30, static_cast<uint32_t>(delta & ((1U << 27) - 1))).Put(delta >> 27, 4);
    return *this;
  }
  PageBuilder& TimeStamp(uint64_t tsc) {
    Head(31, static_cast<uint32_t>(tsc & ((1U << 27) - 1))).Put(tsc >> 27, 4);
    return *this;
  }
  // Adds an event that its writer took back, with this many words of data.
  PageBuilder& Discarded(uint32_t delta, uint32_t words) {
    Head(29, delta).Put(words * 4 + 4, 4);
    bytes_.resize(bytes_.size() + size_t{words} * 4);
    return *this;
  }
  PageBuilder& Head(uint32_t type, uint32_t delta) { return Put(type | delta << 5, 4); }
  PageBuilder& Switch(uint32_t delta, uint32_t from, uint64_t state, uint32_t to,
                      std::string_view name) {
    std::vector<std::byte> data = DataOf(64, kSwitchId, from);
    Store(data, 24, from);
    Store(data, 32, state);
    std::memcpy(data.data() + 40, name.data(), name.size());
    Store(data, 56, to);
    return Event(delta, data);
  }
  PageBuilder& Waking(uint32_t delta, uint32_t current, uint32_t thread, std::string_view name) {
    std::vector<std::byte> data = DataOf(40, kWakingId, current);
    Store(data, 8, static_cast<uint32_t>(20 | (name.size() + 1) << 16));
    Store(data, 12, thread);
    std::memcpy(data.data() + 20, name.data(), name.size());
    return Event(delta, data);
  }

  // `current` begins the thread; `flags` are those of clone(2).
  PageBuilder& NewTask(uint32_t delta, uint32_t current, uint32_t thread, std::string_view name,
                       uint64_t flags) {
    std::vector<std::byte> data = DataOf(40, kNewTaskId, current);
    Store(data, 8, thread);
    std::memcpy(data.data() + 12, name.data(), name.size());
    Store(data, 32, flags);
    return LongEvent(delta, data);
  }
  // The thread ends.
  PageBuilder& Exit(uint32_t delta, uint32_t thread) {
    std::vector<std::byte> data = DataOf(32, kExitId, thread);
    Store(data, 24, thread);
    return Event(delta, data);
  }
  PageBuilder& Migrate(uint32_t delta, uint32_t current, uint32_t thread, uint32_t cpu) {
    std::vector<std::byte> data = DataOf(32, kMigrateId, current);
    Store(data, 8, thread);
    Store(data, 12, cpu);
    return Event(delta, data);
  }

  PageBuilder& SyscallEnter(uint32_t delta, uint32_t current, uint64_t number) {
    std::vector<std::byte> data = DataOf(16, kSyscallEnterId, current);
    Store(data, 8, number);
    return Event(delta, data);
  }
  PageBuilder& SyscallExit(uint32_t delta, uint32_t current, uint64_t number, int64_t result) {
    std::vector<std::byte> data = DataOf(24, kSyscallExitId, current);
    Store(data, 8, number);
    Store(data, 16, result);
    return Event(delta, data);
  }

  PageBuilder& ContentionBegin(uint32_t delta, uint32_t current, uint64_t lock, uint32_t flags) {
    std::vector<std::byte> data = DataOf(20, kContentionBeginId, current);
    Store(data, 8, lock);
    Store(data, 16, flags);
    return Event(delta, data);
  }
  PageBuilder& ContentionEnd(uint32_t delta, uint32_t current, uint64_t lock, int32_t result = 0) {
    std::vector<std::byte> data = DataOf(20, kContentionEndId, current);
    Store(data, 8, lock);
    Store(data, 16, result);
    return Event(delta, data);
  }

  // `current` calls the function at this depth, or it returns.
  PageBuilder& FunctionEntry(uint32_t delta, uint32_t current, uint64_t function, uint32_t depth) {
    std::vector<std::byte> data = DataOf(20, kFunctionEntryId, current);
    Store(data, 8, function);
    Store(data, 16, depth);
    return Event(delta, data);
  }
  PageBuilder& FunctionReturn(uint32_t delta, uint32_t current, uint64_t function, uint32_t depth) {
    std::vector<std::byte> data = DataOf(40, kFunctionReturnId, current);
    Store(data, 8, function);
    Store(data, 16, depth);
    return Event(delta, data);
  }
  PageBuilder& FunctionCall(uint32_t delta, uint32_t current, uint64_t function, uint64_t from) {
    std::vector<std::byte> data = DataOf(24, kFunctionCallId, current);
    Store(data, 8, function);
    Store(data, 16, from);
    return Event(delta, data);
  }

  PageBuilder& IrqEntry(uint32_t delta, uint32_t irq, std::string_view name) {
    std::vector<std::byte> data = DataOf(32, kIrqEntryId);
    Store(data, 8, irq);
    Store(data, 12, static_cast<uint32_t>(16 | (name.size() + 1) << 16));
    std::memcpy(data.data() + 16, name.data(), name.size());
    return Event(delta, data);
  }
  // `id`: kIrqExitId, kSoftirqEntryId or kSoftirqExitId.
  PageBuilder& Interrupt(uint32_t delta, uint16_t id, uint32_t number) {
    std::vector<std::byte> data = DataOf(12, id);
    Store(data, 8, number);
    return Event(delta, data);
  }

  [[nodiscard]] size_t room() const { return kSize - bytes_.size(); }

  // Returns the page; `lost`: events were lost before it.
  [[nodiscard]] std::vector<std::byte> Page(bool is_lossy = false, uint64_t lost = 0) const {
    std::vector<std::byte> page = bytes_;
    auto commit = static_cast<uint32_t>(page.size() - kHead);
    if (is_lossy) commit |= 1U << 31;
    page.resize(kSize);
    if (lost != 0) {
      Store(page, bytes_.size(), lost);
      commit |= 1U << 30;
    }
    Store(page, 8, commit);
    return page;
  }

 private:
  template <typename T>
  static void Store(std::vector<std::byte>& to, size_t at, T value) {
    std::memcpy(to.data() + at, &value, sizeof value);
  }
  // The data of an event, whose first fields all events have.
  static std::vector<std::byte> DataOf(size_t bytes, uint16_t id, uint32_t current = 0) {
    std::vector<std::byte> data(bytes);
    Store(data, 0, id);
    Store(data, 4, current);
    return data;
  }
  PageBuilder& Put(uint64_t value, size_t size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, &value, size);
    return *this;
  }
  PageBuilder& Data(std::span<const std::byte> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace xenoscope::guests
