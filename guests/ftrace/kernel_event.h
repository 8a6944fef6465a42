// The events of a Linux kernel from which its threads, their containers, its interrupts and its
// boot are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/page_reader.h"

namespace xenoscope::guests {

enum class KernelEventKind : uint8_t {
  kSwitch,           // sched_switch
  kWaking,           // sched_waking
  kWakeupNew,        // sched_wakeup_new
  kFork,             // sched_process_fork
  kExec,             // sched_process_exec
  kExit,             // sched_process_exit
  kMigrate,          // sched_migrate_task
  kNewTask,          // task_newtask
  kRename,           // task_rename
  kIrqEntry,         // irq_handler_entry
  kIrqExit,          // irq_handler_exit
  kSoftirqEntry,     // softirq_entry
  kSoftirqExit,      // softirq_exit
  kCgroupMkdir,      // cgroup_mkdir
  kCgroupRename,     // cgroup_rename
  kCgroupAttach,     // cgroup_attach_task
  kCgroupTransfer,   // cgroup_transfer_tasks
  kInitcallLevel,    // initcall_level
  kInitcallStart,    // initcall_start
  kInitcallFinish,   // initcall_finish
  kSyscallEnter,     // raw_syscalls:sys_enter
  kSyscallExit,      // raw_syscalls:sys_exit
  kContentionBegin,  // lock:contention_begin
  kContentionEnd,    // lock:contention_end
  kSignal,           // signal_generate
  kReboot,           // syscalls:sys_enter_reboot
  kFunctionEntry,    // ftrace:funcgraph_entry
  kFunctionReturn,   // ftrace:funcgraph_exit
  kFunctionCall      // ftrace:function
};
inline constexpr size_t kKernelEventKinds = 29;
// Whether the event is of the tracing of functions. Between sched_switch and the switch itself the
// kernel calls some, which are of the thread that stops.
[[nodiscard]] constexpr bool IsOfFunction(KernelEventKind kind) {
  return kind >= KernelEventKind::kFunctionEntry;
}

// A decoded event. Texts point into the page. What a kind does not have is 0 or empty. Threads are
// numbered as the guest's own scheduler does (its first pid namespace); 0: the idle thread.
struct KernelEvent {
  KernelEventKind kind = KernelEventKind::kSwitch;
  uint64_t tsc = 0;      // of the guest's clock
  uint32_t current = 0;  // the thread that was running when the event was written
  // The thread that the event is about: kSwitch: it stops running; kFork, kNewTask: it is new;
  // kCgroupAttach: it moves; kSignal: the signal is for it.
  uint32_t thread = 0;
  uint32_t next = 0;  // kSwitch: the thread that runs now
  // kSwitch: what becomes of `thread` (see IsRunnable); kInitcallFinish, kSyscallExit: what the
  // function or the call returned; kContentionBegin: flags of the lock; kContentionEnd: 0: it is
  // held; kSignal: 0: it was delivered, else ignored, or
  // pending already; kFunctionEntry, kFunctionReturn: how many calls of the thread it is in, of
  // functions that are traced; kFunctionCall: the address behind the call.
  uint64_t state = 0;
  // Interrupts: the vector; kFork: the parent; kMigrate, kWaking, kWakeupNew: the CPU where it is
  // to run; kNewTask: flags of clone(2); cgroups: the number of the group; kInitcallStart,
  // kInitcallFinish: the address of the function; system calls: their number; locks: their address;
  // kSignal: the number of the signal; kReboot: the command (LINUX_REBOOT_CMD_*);
  // functions: an address at the beginning of the one that is called.
  uint64_t number = 0;
  // The thread's name; kSwitch: that of `next`; kRename: the new one; kExec: the program's file;
  // kIrqEntry: the handler's name; kInitcallLevel: that of the level.
  std::string_view name;
  std::string_view path;  // path of the cgroup
};

// Whether a thread with this state (of kSwitch) stopped while it could have gone on. The lower 8
// bits are why it waits, in all kernels since 3.8; above them is that it was preempted.
[[nodiscard]] constexpr bool IsRunnable(uint64_t state) { return (state & 0xff) == 0; }
[[nodiscard]] constexpr bool WasPreempted(uint64_t state) {
  return IsRunnable(state) && state != 0;
}
// Whether it waits where no signal wakes it: for a disk, for example.
[[nodiscard]] constexpr bool IsUninterruptible(uint64_t state) { return (state & 2) != 0; }

// Decodes events of one kernel.
class EventDecoder {
 public:
  // Formats of other events are allowed. Errors (InvalidArgument): a known event lacks a field that
  // is needed, or has it with a size that no kernel gives it.
  static absl::StatusOr<EventDecoder> Create(const Formats& formats);

  // Decodes the event into `to`. False: it is of another kind, or too short (`malformed` is then
  // set). O(1), allocates nothing.
  bool Decode(const RawEvent& raw, KernelEvent& to, bool& malformed) const;

 private:
  // The place of a value in an event; size 0: the event has none.
  struct Place {
    uint16_t offset = 0;
    uint16_t size = 0;
    bool is_dynamic = false;
  };
  struct Layout {
    KernelEventKind kind = KernelEventKind::kSwitch;
    uint32_t min_size = 0;  // every value lies before this byte
    Place current, thread, next, state, number, name, path;
  };
  struct Names;  // the fields' names of one kind

  static absl::StatusOr<Layout> Bind(const EventFormat& format, const Names& names);
  static uint64_t Number(Bytes data, Place place);
  static std::string_view Text(Bytes data, Place place);

  static constexpr uint8_t kNone = 0xff;
  std::vector<uint8_t> by_id_;  // index into layouts_; kNone: not decoded
  std::vector<Layout> layouts_;
};

}  // namespace xenoscope::guests
