// Follows the threads of one domain by its kernel's events: on which vCPU each runs, what it waits
// for, and what Xen does with that vCPU meanwhile.
//
//   sched_switch ---------------------> on a vCPU:  guest, Xen, stolen, halted, untraced
//   sched_switch (still runnable) ----> preempted   } in the guest's run queue
//   sched_waking ---------------------> woken       }
//   sched_switch (not runnable) ------> sleeping, uninterruptible
//
// What a vCPU does is told from outside (OnVcpuState), in the same order of time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/call_trees.h"
#include "guests/threads/culprits.h"
#include "guests/threads/interrupts.h"
#include "guests/threads/lock_waits.h"
#include "guests/threads/state_times.h"
#include "guests/threads/syscalls.h"
#include "guests/threads/thread_observer.h"
#include "guests/threads/xen_times.h"

namespace xenoscope::guests {

struct GuestProcess {
  uint32_t pid = 0;  // 0: not known
  std::string name;
  std::string cgroup;  // path; empty: not known
  uint32_t moves = 0;  // times that it was moved to a cgroup
};

struct GuestThread {
  uint32_t tid = 0;
  size_t process = 0;  // index
  std::string name;
  StateTimes times{};
  uint64_t switches = 0;    // times that it was put on a vCPU
  uint64_t preempted = 0;   // times that another thread took its place
  uint64_t migrations = 0;  // times that it was moved to another vCPU
};

// What a vCPU does.
struct VcpuState {
  ThreadState state = ThreadState::kUntraced;  // of a thread on it
  HandledExit exit{};                          // kXen
};

struct GuestVcpu {
  TscRange window;     // from the domain's first event to its last one
  StateTimes times{};  // of the threads on it, and kLost
};

class ThreadStates {
 public:
  // `trace` outlives this.
  ThreadStates(const KernelTrace& trace, const EventClock& clock);
  // Not copied: it points into itself.
  ThreadStates(ThreadStates&&) = default;
  ThreadStates& operator=(ThreadStates&&) = default;

  // `observer`, which outlives this, receives what comes from here on.
  void SetObserver(ThreadObserver* observer) { observer_ = observer; }
  // Divides calls of functions by the part of time in which the outermost one begins
  // (CallTrees::SetParts). To be called before Take.
  void SetCallParts(std::vector<Tsc> begins) { calls_.SetParts(std::move(begins)); }

  // Returns the time of the next event in the order of time; the largest Tsc: there is none.
  [[nodiscard]] Tsc next() const;
  // Returns the CPU of the next event, if there is one.
  [[nodiscard]] uint32_t next_cpu() const { return heap_.front()->cpu(); }
  // Whether the next event, if there is one, puts another thread on its CPU.
  [[nodiscard]] bool next_is_switch() const {
    return heap_.front()->event().kind == KernelEventKind::kSwitch;
  }
  // Takes the next event, if there is one. `state` is that of its vCPU.
  void Take(const VcpuState& state);

  // Says what the vCPU does from the end of what was told before, or from `since` if that is later,
  // up to `until`.
  void OnVcpuState(uint32_t cpu, Tsc since, Tsc until, const VcpuState& state);

  // Says that the vCPU waited in this range for the pCPU on which `by` ran. To be called before
  // OnVcpuState for what comes after the range; where a thread has taken another one's place since,
  // nothing is known of whose time it was.
  void OnStolen(uint32_t cpu, TscRange range, Culprit by);

  // Says that Xen woke the vCPU now, and who made it do so if that is known.
  void OnVcpuWoken(uint32_t cpu, std::optional<EventSender> sender);

  // Say now that the handler of the vCPU's exit recorded something, and that a PV guest's vCPU
  // entered Xen.
  void OnHandlerRecord(uint32_t cpu, uint64_t exit, const trace::Record& record);
  void OnEntry(uint32_t cpu, const XenReason& reason);

  // Ends everything at the time of the last event. Errors (Internal): on a vCPU the threads' times
  // and what was lost are not its window, the threads' sum is not that of the vCPUs, a thread's
  // times by reason are not its time in Xen, it was in system calls, in functions or waited for a
  // lock for more than its time, self times of functions are not the time of calls, or handlers ran
  // for more than the vCPUs' time.
  absl::Status Finish();

  [[nodiscard]] DomainId domain() const { return trace_->domain(); }
  [[nodiscard]] const std::vector<GuestProcess>& processes() const { return processes_; }
  [[nodiscard]] const std::deque<GuestThread>& threads() const { return threads_; }
  [[nodiscard]] const std::vector<GuestVcpu>& vcpus() const { return vcpus_; }
  // Returns who ran while threads waited. What is missing from a thread's kStolen, kWoken and
  // kPreempted was taken by nobody that is known. O(result log result).
  [[nodiscard]] std::vector<Wait> Waits() const { return waits_.All(); }
  // Returns what Xen did for threads: their kXen by reason, and a PV guest's entries. O(result log
  // result).
  [[nodiscard]] std::vector<XenTime> InXen() const { return xen_times_.All(); }
  // Returns the system calls of threads, if their events were recorded. O(result log result).
  [[nodiscard]] std::vector<Syscall> SystemCalls() const { return syscalls_.All(); }
  // Returns the waits of threads for locks, if their events were recorded. O(result log result).
  [[nodiscard]] std::vector<LockWait> Locks() const { return locks_.All(); }
  // Returns the calls of functions, if they were traced, and how many events they had.
  [[nodiscard]] const CallTrees& calls() const { return calls_; }
  [[nodiscard]] const FunctionEvents& function_events() const { return function_events_; }
  // Returns the handlers of interrupts. O(result log result).
  [[nodiscard]] std::vector<Interrupt> Handlers() const { return interrupts_.All(); }
  // Returns the thread on the CPU after the last event, if it is known: an index.
  [[nodiscard]] std::optional<size_t> ThreadOn(uint32_t cpu) const {
    const size_t thread = cpu < vcpu_tracks_.size() ? vcpu_tracks_[cpu].thread : kNone;
    return thread == kNone ? std::nullopt : std::optional(thread);
  }
  // Whether the thread, an index, does not run again, by the events up to now.
  [[nodiscard]] bool HasEnded(size_t thread) const { return tracks_[thread].ends; }
  // Whether the thread stands for its CPU when that has nothing to do.
  [[nodiscard]] bool IsIdleThread(size_t thread) const {
    return std::ranges::find(idle_, thread) != idle_.end();
  }
  // Returns the time of the last event.
  [[nodiscard]] Tsc now() const { return last_; }
  [[nodiscard]] uint64_t events() const;
  [[nodiscard]] KernelTraceFaults faults() const;
  // Returns how often a CPU's event was written by another thread than the one that the events
  // before it put there: Linux 6.18 often leaves the idle thread without an event of the switch
  // while perf's cpu-clock takes samples. Who ran since the CPU's event before is not known then.
  [[nodiscard]] uint64_t missed_switches() const { return missed_switches_; }

  // Threads that are told apart; the others share one, without a number.
  static constexpr size_t kMaxThreads = size_t{1} << 17;
  // Limits of the texts that are kept, in bytes.
  static constexpr size_t kMaxName = 64;
  static constexpr size_t kMaxPath = 512;

 private:
  static constexpr size_t kNone = ~size_t{0};
  static constexpr size_t kShared = kMaxThreads;  // the thread that the others share
  // What is followed of a thread beside its sums.
  struct Track {
    ThreadState state = ThreadState::kLost;
    Tsc since;
    size_t vcpu = kNone;   // on this vCPU
    size_t queue = kNone;  // waits in the run queue of this vCPU,
    Tsc queued;            // since then
    uint64_t losses = 0;   // losses of the domain when its state was last known
    bool known = false;    // its state is known, and it has not ended
    bool ends = false;     // it will not run again
  };
  struct VcpuTrack {
    size_t thread = kNone;  // the thread on it; kNone: not known
    size_t before = kNone;  // the one that it replaced, until `thread` has written an event
    Tsc accounted;          // up to here
    Tsc switched;           // when `thread` was put on it
    Tsc forgotten;          // kNone: since then
    // An interrupt, or what one left to do, has stopped `thread`.
    bool in_irq = false;
    bool in_softirq = false;
    // Who woke the vCPU, until its kernel runs another thread than the idle one.
    std::optional<EventSender> sender;
  };

  size_t ThreadOf(uint32_t tid);
  size_t NewThread(uint32_t tid, size_t process, std::string_view name);
  size_t ProcessOf(uint32_t pid);
  // The thread's number on this CPU: each CPU has an idle thread of its own, numbered 0.
  size_t OnCpu(uint32_t cpu, uint32_t tid);
  // Begins with the domain's first event: each CPU's first one says who has run there since, as its
  // switches are recorded from here on.
  void Begin(Tsc at);
  // Takes the thread that wrote the cursor's event, of a switch the one that stops, for the one on
  // the CPU.
  void Identify(const CpuCursor& cursor, Tsc at);
  void Charge(uint32_t cpu, Tsc until, const VcpuState& of_vcpu);
  // The thread waits in the CPU's run queue from here on, and in no other one; or in none.
  // `waited`: its time up to here is that of its state.
  void EnterQueue(size_t thread, uint64_t cpu, Tsc at);
  void LeaveQueue(size_t thread, Tsc at, bool waited);
  // Ends the time in which the thread was on no vCPU.
  void EndWait(size_t thread, Tsc at);
  void Enter(size_t thread, ThreadState state, Tsc at);
  // Whether the cursor's event was written by another thread than the one on the CPU.
  [[nodiscard]] bool IsAfterMissedSwitch(const CpuCursor& cursor) const;
  // Whether the cursor's event is a call of a function, by the thread that the last switch on this
  // CPU stopped: the kernel calls some between the event of the switch and the switch.
  [[nodiscard]] bool IsOfThreadBefore(const CpuCursor& cursor) const;
  // The thread runs on this CPU from here on, and so on no other one.
  void PutOn(uint32_t cpu, size_t thread, Tsc at);
  // From here on the CPU's thread is not known, up to its next event.
  void Forget(uint32_t cpu, Tsc at, const VcpuState& state);
  void OnSwitch(uint32_t cpu, const KernelEvent& event, const VcpuState& state, Tsc at);
  void OnWaking(uint32_t cpu, const KernelEvent& event, Tsc at);
  void OnMigrate(const KernelEvent& event, Tsc at);
  void OnNewTask(uint32_t cpu, const KernelEvent& event, Tsc at);
  // Says to the observer that the CPU's thread is another one than `before`, or kNone.
  void NotifySwitch(uint32_t cpu, size_t before, std::optional<uint64_t> state, Tsc at) const;
  void OnInterrupt(uint32_t cpu, const KernelEvent& event, const VcpuState& state, Tsc at);
  void OnRename(const KernelEvent& event);
  void OnSyscall(uint32_t cpu, const KernelEvent& event, const VcpuState& state, Tsc at);
  void OnContention(uint32_t cpu, const KernelEvent& event, const VcpuState& state, Tsc at);
  void OnFunction(const CpuCursor& cursor, const VcpuState& state, Tsc at);
  // Adds the time in which the thread has waited up to now to its times, and lets it wait on.
  void SettleWait(size_t thread, Tsc at);
  // Checks that handlers did not run for longer than vCPUs did.
  [[nodiscard]] absl::Status CheckHandlers() const;
  // Checks that threads' times in system calls are not more than their times.
  [[nodiscard]] absl::Status CheckSyscalls() const;
  // Checks that threads did not wait for a lock for longer than they lived.
  [[nodiscard]] absl::Status CheckLocks() const;
  // Checks that times of calls add up, and are not more than threads' times.
  [[nodiscard]] absl::Status CheckCalls() const;
  // Checks that the threads' times in Xen are those by reason.
  [[nodiscard]] absl::Status CheckInXen() const;

  const KernelTrace* trace_;
  ThreadObserver* observer_ = nullptr;
  std::vector<CpuCursor> cursors_;  // by CPU
  std::vector<CpuCursor*> heap_;    // those with an event, the earliest first
  std::vector<GuestProcess> processes_;
  std::deque<GuestThread> threads_;
  std::vector<Track> tracks_;  // by thread
  absl::flat_hash_map<uint32_t, size_t> thread_of_;
  absl::flat_hash_map<uint32_t, size_t> process_of_;
  WaitSums waits_;
  XenTimes xen_times_;
  Syscalls syscalls_;
  LockWaits locks_;
  CallTrees calls_;
  FunctionEvents function_events_;
  Interrupts interrupts_;
  std::vector<VcpuHistory> histories_;  // by CPU
  std::vector<size_t> idle_;            // thread of each CPU
  std::vector<GuestVcpu> vcpus_;
  std::vector<VcpuTrack> vcpu_tracks_;
  uint64_t losses_ = 0;
  uint64_t missed_switches_ = 0;
  Tsc last_;
  bool begun_ = false;
};

}  // namespace xenoscope::guests
