#include "guests/threads/thread_states.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace xenoscope::guests {
namespace {

constexpr uint64_t kCloneThread = 0x10000;  // CLONE_THREAD of clone(2)
constexpr Tsc kNever{std::numeric_limits<uint64_t>::max()};

bool IsLater(const CpuCursor* a, const CpuCursor* b) {
  if (a->at() != b->at()) return a->at() > b->at();
  return a->cpu() > b->cpu();
}

}  // namespace

ThreadStates::ThreadStates(const KernelTrace& trace, const EventClock& clock)
    : trace_(&trace),
      xen_times_(trace.cpus()),
      interrupts_(trace.cpus()),
      histories_(trace.cpus()),
      idle_(trace.cpus(), kNone),
      vcpus_(trace.cpus()),
      vcpu_tracks_(trace.cpus()) {
  processes_.emplace_back();  // process of threads of which it is not known
  for (const InitialThread& thread : trace.threads()) {
    const size_t process = ProcessOf(thread.pid);
    if (thread.pid == thread.tid) processes_[process].name = thread.name;
    if (!thread_of_.contains(thread.tid)) NewThread(thread.tid, process, thread.name);
  }
  for (const InitialCgroup& cgroup : trace.cgroups()) {
    processes_[ProcessOf(cgroup.pid)].cgroup = cgroup.path;
  }
  cursors_.reserve(trace.cpus());
  for (size_t cpu = 0; cpu < trace.cpus(); ++cpu) {
    CpuCursor& cursor = cursors_.emplace_back(trace, cpu, clock);
    if (cursor.Next()) heap_.push_back(&cursor);
  }
  std::ranges::make_heap(heap_, IsLater);
}

size_t ThreadStates::NewThread(uint32_t tid, size_t process, std::string_view name) {
  if (threads_.size() > kShared) return kShared;
  const bool is_shared = threads_.size() == kShared;
  threads_.push_back(
      {.tid = is_shared ? 0 : tid,
       .process = is_shared ? 0 : process,
       .name = std::string(is_shared ? "[other threads]" : name.substr(0, kMaxName))});
  tracks_.emplace_back();
  const size_t thread = threads_.size() - 1;
  if (tid != 0 && !is_shared) thread_of_[tid] = thread;
  return thread;
}

size_t ThreadStates::ThreadOf(uint32_t tid) {
  const auto found = thread_of_.find(tid);
  return found != thread_of_.end() ? found->second : NewThread(tid, 0, "");
}

size_t ThreadStates::ProcessOf(uint32_t pid) {
  if (processes_.size() > kMaxThreads) return 0;
  const auto [found, is_new] = process_of_.try_emplace(pid, processes_.size());
  if (is_new) processes_.push_back({.pid = pid, .name = {}, .cgroup = {}});
  return found->second;
}

size_t ThreadStates::OnCpu(uint32_t cpu, uint32_t tid) {
  if (tid != 0) return ThreadOf(tid);
  if (idle_[cpu] == kNone) {
    idle_[cpu] = NewThread(0, 0, "[idle]");
  }
  return idle_[cpu];
}

Tsc ThreadStates::next() const { return heap_.empty() ? kNever : heap_.front()->at(); }

void ThreadStates::Take(const VcpuState& state) {
  CpuCursor& cursor = *heap_.front();
  const KernelEvent& event = cursor.event();
  const Tsc at = std::max(cursor.at(), last_);
  last_ = at;
  if (cursor.after_loss()) ++losses_;  // what changed since the loss began is not known, either
  if (!begun_) Begin(at);
  if (vcpu_tracks_[cursor.cpu()].thread == kNone) {
    Charge(cursor.cpu(), at, {ThreadState::kLost});
    Identify(cursor, at);
  }
  switch (event.kind) {
    case KernelEventKind::kSwitch:
      OnSwitch(cursor.cpu(), event, state, at);
      break;
    case KernelEventKind::kWaking:
    case KernelEventKind::kWakeupNew:
      OnWaking(cursor.cpu(), event, at);
      break;
    case KernelEventKind::kNewTask:
      OnNewTask(cursor.cpu(), event, at);
      break;
    case KernelEventKind::kRename:
      OnRename(event);
      break;
    case KernelEventKind::kExit:
      tracks_[ThreadOf(event.thread)].ends = true;
      break;
    case KernelEventKind::kMigrate:
      OnMigrate(event, at);
      break;
    case KernelEventKind::kIrqEntry:
    case KernelEventKind::kSoftirqEntry:
    case KernelEventKind::kIrqExit:
    case KernelEventKind::kSoftirqExit:
      OnInterrupt(cursor.cpu(), event, state, at);
      break;
    case KernelEventKind::kSyscallEnter:
    case KernelEventKind::kSyscallExit:
      OnSyscall(cursor.cpu(), event, state, at);
      break;
    case KernelEventKind::kContentionBegin:
    case KernelEventKind::kContentionEnd:
      OnContention(cursor.cpu(), event, state, at);
      break;
    case KernelEventKind::kFunctionEntry:
    case KernelEventKind::kFunctionReturn:
    case KernelEventKind::kFunctionCall:
      OnFunction(cursor, state, at);
      break;
    case KernelEventKind::kCgroupAttach:
    case KernelEventKind::kCgroupTransfer: {
      const size_t process = threads_[ThreadOf(event.thread)].process;
      if (process == 0) break;
      processes_[process].cgroup = event.path.substr(0, kMaxPath);
      ++processes_[process].moves;
      break;
    }
    default:
      break;
  }
  if (event.kind != KernelEventKind::kSwitch && !IsOfThreadBefore(cursor)) {
    vcpu_tracks_[cursor.cpu()].before = kNone;
  }
  const auto end = heap_.end();
  std::ranges::pop_heap(heap_, IsLater);
  if (cursor.Next()) {
    if (cursor.after_loss()) {
      ++losses_;
      Forget(cursor.cpu(), at, state);
    } else if (IsAfterMissedSwitch(cursor)) {
      ++missed_switches_;
      Forget(cursor.cpu(), at, state);
    }
    std::ranges::push_heap(heap_, IsLater);
  } else {
    heap_.erase(end - 1);
  }
}

void ThreadStates::Begin(Tsc at) {
  begun_ = true;
  for (VcpuTrack& vcpu : vcpu_tracks_) vcpu.accounted = at;
  for (GuestVcpu& vcpu : vcpus_) vcpu.window = {at, at};
  for (const CpuCursor* const cursor : heap_) {
    if (!cursor->after_loss()) Identify(*cursor, at);
  }
  for (uint32_t cpu = 0; cpu < vcpu_tracks_.size(); ++cpu) {
    if (vcpu_tracks_[cpu].thread == kNone) NotifySwitch(cpu, kNone, std::nullopt, at);
  }
}

void ThreadStates::Identify(const CpuCursor& cursor, Tsc at) {
  const uint32_t cpu = cursor.cpu();
  const size_t thread = OnCpu(cpu, cursor.event().current);
  const Track& track = tracks_[thread];
  // It may have come here at any time since the CPU's event before.
  if (track.known && track.vcpu == kNone) {
    Enter(thread, ThreadState::kLost, std::max(track.since, vcpu_tracks_[cpu].forgotten));
  }
  PutOn(cpu, thread, at);
  NotifySwitch(cpu, kNone, std::nullopt, at);
}

void ThreadStates::NotifySwitch(uint32_t cpu, size_t before, std::optional<uint64_t> state,
                                Tsc at) const {
  if (observer_ == nullptr) return;
  observer_->OnSwitch({.domain = domain(),
                       .cpu = cpu,
                       .at = at,
                       .before = before == kNone ? std::nullopt : std::optional(before),
                       .after = ThreadOn(cpu),
                       .state = state});
}

bool ThreadStates::IsOfThreadBefore(const CpuCursor& cursor) const {
  const size_t before = vcpu_tracks_[cursor.cpu()].before;
  if (before == kNone || !IsOfFunction(cursor.event().kind)) return false;
  const uint32_t current = cursor.event().current;
  return current == 0 ? before == idle_[cursor.cpu()] : threads_[before].tid == current;
}

bool ThreadStates::IsAfterMissedSwitch(const CpuCursor& cursor) const {
  const size_t thread = vcpu_tracks_[cursor.cpu()].thread;
  const uint32_t current = cursor.event().current;
  if (thread == kNone || IsOfThreadBefore(cursor)) return false;
  if (current == 0) return thread != idle_[cursor.cpu()];
  if (threads_[thread].tid == current) return false;
  return thread != kShared || thread_of_.contains(current);
}

void ThreadStates::PutOn(uint32_t cpu, size_t thread, Tsc at) {
  const size_t other = tracks_[thread].vcpu;
  if (other != kNone && other != cpu && thread != kShared) {
    ++missed_switches_;
    Forget(static_cast<uint32_t>(other), vcpu_tracks_[other].accounted, {});
  }
  EndWait(thread, at);
  tracks_[thread].vcpu = cpu;
  vcpu_tracks_[cpu].thread = thread;
  vcpu_tracks_[cpu].switched = at;
}

void ThreadStates::Charge(uint32_t cpu, Tsc until, const VcpuState& of_vcpu) {
  VcpuTrack& vcpu = vcpu_tracks_[cpu];
  if (!begun_ || until <= vcpu.accounted) return;
  const TscRange range{vcpu.accounted, until};
  const Cycles time = range.Length();
  vcpu.accounted = until;
  const ThreadState state = vcpu.thread == kNone ? ThreadState::kLost : of_vcpu.state;
  if (state == ThreadState::kStolen) {
    histories_[cpu].Waited(until);
  } else if (vcpu.thread == kNone) {
    histories_[cpu].Skip(until);
  } else {
    histories_[cpu].Ran(until, {domain(), vcpu.thread});
  }
  vcpus_[cpu].times[static_cast<size_t>(state)] += time;
  if (vcpu.thread == kNone) return;
  threads_[vcpu.thread].times[static_cast<size_t>(state)] += time;
  if (state == ThreadState::kStolen && vcpu.thread != idle_[cpu]) {
    locks_.Stolen(vcpu.thread, range);
  }
  if (state == ThreadState::kXen) xen_times_.Handled(cpu, of_vcpu.exit, vcpu.thread, time);
  if (observer_ != nullptr) observer_->OnInterval({domain(), vcpu.thread, cpu, range, state});
}

void ThreadStates::OnVcpuState(uint32_t cpu, Tsc since, Tsc until, const VcpuState& state) {
  if (cpu >= vcpu_tracks_.size()) return;
  // No event comes after the last one, and no thread is known then.
  const Tsc limit = heap_.empty() ? last_ : kNever;
  Charge(cpu, std::min(since, limit), {ThreadState::kUntraced});
  Charge(cpu, std::min(until, limit), state);
}

void ThreadStates::OnStolen(uint32_t cpu, TscRange range, Culprit by) {
  if (cpu >= vcpu_tracks_.size()) return;
  histories_[cpu].Stolen(range, by);
  const VcpuTrack& vcpu = vcpu_tracks_[cpu];
  if (!begun_ || vcpu.thread == kNone) return;
  const TscRange known{std::max(vcpus_[cpu].window.begin, vcpu.switched),
                       heap_.empty() ? last_ : kNever};
  const TscRange part = range.Intersect(known);
  if (part.Empty()) return;
  waits_.Add({vcpu.thread, WaitState::kStolen, Scheduler::kXen, by, part.Length()});
}

void ThreadStates::OnVcpuWoken(uint32_t cpu, std::optional<EventSender> sender) {
  if (cpu < vcpu_tracks_.size()) vcpu_tracks_[cpu].sender = sender;
}

void ThreadStates::OnHandlerRecord(uint32_t cpu, uint64_t exit, const trace::Record& record) {
  if (cpu < vcpu_tracks_.size()) xen_times_.TakeRecord(cpu, exit, record);
}

void ThreadStates::OnEntry(uint32_t cpu, const XenReason& reason) {
  const std::optional<size_t> thread = ThreadOn(cpu);
  if (thread && !heap_.empty()) xen_times_.Entered(*thread, reason);
}

void ThreadStates::EnterQueue(size_t thread, uint64_t cpu, Tsc at) {
  LeaveQueue(thread, at, /*waited=*/false);
  if (cpu >= histories_.size()) return;  // no CPU of which there are events
  tracks_[thread].queue = cpu;
  tracks_[thread].queued = at;
  histories_[cpu].Join(at);
}

void ThreadStates::LeaveQueue(size_t thread, Tsc at, bool waited) {
  Track& track = tracks_[thread];
  if (track.queue == kNone) return;
  VcpuHistory& history = histories_[std::exchange(track.queue, kNone)];
  if (waited) {
    const WaitState state =
        track.state == ThreadState::kWoken ? WaitState::kWoken : WaitState::kPreempted;
    history.ForEach({track.queued, at}, [&](TscRange part, Scheduler scheduler, Culprit by) {
      waits_.Add({thread, state, scheduler, by, part.Length()});
    });
  }
  history.Leave();
}

void ThreadStates::EndWait(size_t thread, Tsc at) {
  Track& track = tracks_[thread];
  const bool waited = track.known && track.vcpu == kNone;
  LeaveQueue(thread, at, waited && track.losses == losses_);
  if (waited) {
    const ThreadState state = track.losses == losses_ ? track.state : ThreadState::kLost;
    threads_[thread].times[static_cast<size_t>(state)] += at - track.since;
    if (observer_ != nullptr && at > track.since) {
      observer_->OnInterval({domain(), thread, std::nullopt, {track.since, at}, state});
    }
  }
  track.known = true;
  track.since = at;
  track.losses = losses_;
}

void ThreadStates::Enter(size_t thread, ThreadState state, Tsc at) {
  EndWait(thread, at);
  tracks_[thread].state = state;
}

void ThreadStates::Forget(uint32_t cpu, Tsc at, const VcpuState& state) {
  VcpuTrack& vcpu = vcpu_tracks_[cpu];
  Charge(cpu, at, state);
  if (vcpu.thread == kNone) return;
  Track& track = tracks_[vcpu.thread];
  track.vcpu = kNone;
  track.since = at;
  track.losses = losses_;
  track.state = ThreadState::kLost;
  const size_t before = std::exchange(vcpu.thread, kNone);
  vcpu.before = kNone;
  vcpu.forgotten = at;
  NotifySwitch(cpu, before, std::nullopt, at);
}

void ThreadStates::OnSwitch(uint32_t cpu, const KernelEvent& event, const VcpuState& state,
                            Tsc at) {
  VcpuTrack& vcpu = vcpu_tracks_[cpu];
  Charge(cpu, at, state);
  const size_t before = vcpu.thread;
  const size_t after = OnCpu(cpu, event.next);
  if (before != kNone) {
    Track& track = tracks_[before];
    LeaveQueue(before, at, /*waited=*/false);  // it ran, whatever events before said
    track.vcpu = kNone;
    // The idle thread waits for nothing, nor does one that has ended. While it ends it may be
    // preempted.
    track.known = threads_[before].tid != 0 && (!track.ends || IsRunnable(event.state));
    track.since = at;
    track.losses = losses_;
    track.state = IsRunnable(event.state)          ? ThreadState::kPreempted
                  : IsUninterruptible(event.state) ? ThreadState::kUninterruptible
                                                   : ThreadState::kSleeping;
    if (WasPreempted(event.state)) ++threads_[before].preempted;
    if (track.known && track.state == ThreadState::kPreempted) EnterQueue(before, cpu, at);
  }
  PutOn(cpu, after, at);
  vcpu.before = before;
  GuestThread& thread = threads_[after];
  ++thread.switches;
  if (event.next != 0) thread.name = event.name.substr(0, kMaxName);
  if (event.next != 0) vcpu.sender.reset();
  vcpu.in_irq = vcpu.in_softirq = false;  // no interrupt does that; their exits may be lost
  interrupts_.Reset(cpu);
  NotifySwitch(cpu, before, event.state, at);
}

void ThreadStates::OnWaking(uint32_t cpu, const KernelEvent& event, Tsc at) {
  const size_t thread = ThreadOf(event.thread);
  const Track& track = tracks_[thread];
  // It may not have stopped running yet, or already wait for a vCPU.
  const bool waits = track.state == ThreadState::kWoken || track.state == ThreadState::kPreempted;
  if (track.vcpu != kNone) return;
  if (track.known && waits) {
    if (track.queue == kNone) EnterQueue(thread, event.number, at);  // a new thread's first one
    return;
  }
  Enter(thread, ThreadState::kWoken, at);
  EnterQueue(thread, event.number, at);
  const std::optional<size_t> waker = ThreadOn(cpu);
  if (observer_ != nullptr && waker) {
    const VcpuTrack& vcpu = vcpu_tracks_[cpu];
    const bool is_idle = threads_[*waker].tid == 0;  // it wakes nobody by itself
    const bool by_interrupt = is_idle || vcpu.in_irq || vcpu.in_softirq;
    observer_->OnWakeup({.domain = domain(),
                         .waker = *waker,
                         .woken = thread,
                         .at = at,
                         .by_interrupt = by_interrupt,
                         .sender = by_interrupt ? vcpu.sender : std::nullopt,
                         .cpu = cpu});
  }
  if (threads_[thread].name.empty()) threads_[thread].name = event.name.substr(0, kMaxName);
}

void ThreadStates::OnMigrate(const KernelEvent& event, Tsc at) {
  const size_t thread = ThreadOf(event.thread);
  ++threads_[thread].migrations;
  if (tracks_[thread].queue == kNone || tracks_[thread].losses != losses_) return;
  EndWait(thread, at);
  EnterQueue(thread, event.number, at);
}

void ThreadStates::OnNewTask(uint32_t cpu, const KernelEvent& event, Tsc at) {
  const size_t creator = OnCpu(cpu, event.current);
  const size_t parent = threads_[creator].process;
  size_t process = parent;
  if ((event.number & kCloneThread) == 0) {
    process_of_.erase(event.thread);  // its number was another one's before
    process = ProcessOf(event.thread);
  }
  if (process != parent && process != 0) {
    processes_[process].name = event.name.substr(0, kMaxName);
    processes_[process].cgroup = processes_[parent].cgroup;
  }
  const size_t thread = NewThread(event.thread, process, event.name);
  Enter(thread, ThreadState::kWoken, at);
  if (observer_ != nullptr) observer_->OnNewThread({domain(), thread, creator, cpu, at});
}

void ThreadStates::OnInterrupt(uint32_t cpu, const KernelEvent& event, const VcpuState& state,
                               Tsc at) {
  const KernelEventKind kind = event.kind;
  Charge(cpu, at, state);
  const Interrupts::Now now{at, losses_, vcpus_[cpu].times};
  const bool is_soft =
      kind == KernelEventKind::kSoftirqEntry || kind == KernelEventKind::kSoftirqExit;
  if (kind == KernelEventKind::kIrqEntry || kind == KernelEventKind::kSoftirqEntry) {
    const std::string_view name = event.name.substr(0, kMaxName);
    interrupts_.Begin(cpu, {is_soft, event.number, std::string(name)}, now);
  } else if (const auto ended = interrupts_.End(cpu, is_soft, event.number, now)) {
    if (observer_ != nullptr) observer_->OnHandler({domain(), cpu, ended->range, ended->key});
  }
  VcpuTrack& vcpu = vcpu_tracks_[cpu];
  if (kind == KernelEventKind::kIrqEntry) vcpu.in_irq = true;
  if (kind == KernelEventKind::kIrqExit) vcpu.in_irq = false;
  if (kind == KernelEventKind::kSoftirqEntry) vcpu.in_softirq = true;
  if (kind == KernelEventKind::kSoftirqExit) vcpu.in_softirq = false;
}

void ThreadStates::OnSyscall(uint32_t cpu, const KernelEvent& event, const VcpuState& state,
                             Tsc at) {
  Charge(cpu, at, state);
  const size_t thread = OnCpu(cpu, event.current);
  const StateTimes& so_far = threads_[thread].times;
  if (event.kind == KernelEventKind::kSyscallEnter) {
    syscalls_.Enter(thread, event.number, losses_, at, so_far);
  } else {
    syscalls_.Return(thread, event.number, event.state, losses_, at, so_far);
  }
}

void ThreadStates::OnContention(uint32_t cpu, const KernelEvent& event, const VcpuState& state,
                                Tsc at) {
  Charge(cpu, at, state);
  const size_t thread = OnCpu(cpu, event.current);
  const StateTimes& so_far = threads_[thread].times;
  if (event.kind == KernelEventKind::kContentionBegin) {
    const auto flags = static_cast<uint32_t>(event.state);
    locks_.Begin(thread, event.number, flags, losses_, at, so_far);
  } else {
    locks_.End(thread, event.number, event.state, losses_, at, so_far);
  }
}

void ThreadStates::SettleWait(size_t thread, Tsc at) {
  const Track& track = tracks_[thread];
  if (track.vcpu != kNone || !track.known || track.losses != losses_) return;
  const size_t queue = track.queue;
  EndWait(thread, at);
  if (queue != kNone) EnterQueue(thread, queue, at);
}

void ThreadStates::OnFunction(const CpuCursor& cursor, const VcpuState& state, Tsc at) {
  const KernelEvent& event = cursor.event();
  const uint32_t cpu = cursor.cpu();
  Charge(cpu, at, state);
  function_events_.Add(cursor);
  const size_t thread = OnCpu(cpu, event.current);
  if (thread == kShared) return calls_.LeaveOut();
  SettleWait(thread, at);  // it may have stopped, see IsOfThreadBefore
  const CallTrees::Now now{thread, at, losses_, threads_[thread].times, thread == idle_[cpu]};
  if (event.kind == KernelEventKind::kFunctionEntry) {
    calls_.Enter(event.number, event.state, now);
  } else if (event.kind == KernelEventKind::kFunctionReturn) {
    calls_.Return(event.number, event.state, now);
  } else {
    calls_.Count(event.number, event.state, now);
  }
}

void ThreadStates::OnRename(const KernelEvent& event) {
  GuestThread& thread = threads_[ThreadOf(event.thread)];
  thread.name = event.name.substr(0, kMaxName);
  GuestProcess& process = processes_[thread.process];
  if (process.pid == thread.tid && process.pid != 0) process.name = thread.name;
}

absl::Status ThreadStates::Finish() {
  Cycles on_vcpus = 0;
  for (uint32_t cpu = 0; cpu < vcpus_.size(); ++cpu) {
    Charge(cpu, last_, {ThreadState::kUntraced});
    GuestVcpu& vcpu = vcpus_[cpu];
    vcpu.window.end = last_;
    const Cycles sum = Sum(vcpu.times);
    if (sum != vcpu.window.Length()) {
      return InternalError("{} vCPU {}: threads have {} cycles of a window of {}",
                           ToString(domain()), cpu, sum, vcpu.window.Length());
    }
    on_vcpus += sum - vcpu.times[static_cast<size_t>(ThreadState::kLost)];
  }
  Cycles on_threads = 0;
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (tracks_[i].vcpu == kNone) EndWait(i, last_);
    for (size_t state = 0; state < kThreadStates; ++state) {
      if (IsOnVcpu(static_cast<ThreadState>(state))) on_threads += threads_[i].times[state];
    }
  }
  if (on_threads != on_vcpus) {
    return InternalError("{}: threads ran for {} cycles, and its vCPUs for {}", ToString(domain()),
                         on_threads, on_vcpus);
  }
  xen_times_.Finish();
  syscalls_.Finish();
  locks_.Finish();
  calls_.Finish();
  for (size_t cpu = 0; cpu < vcpus_.size(); ++cpu) interrupts_.Reset(cpu);
  XENOSCOPE_RETURN_IF_ERROR(CheckSyscalls());
  XENOSCOPE_RETURN_IF_ERROR(CheckLocks());
  XENOSCOPE_RETURN_IF_ERROR(CheckCalls());
  XENOSCOPE_RETURN_IF_ERROR(CheckHandlers());
  return CheckInXen();
}

absl::Status ThreadStates::CheckHandlers() const {
  StateTimes of_handlers{};
  StateTimes of_vcpus{};
  for (const Interrupt& handler : interrupts_.All()) AddTo(of_handlers, handler.times);
  for (const GuestVcpu& vcpu : vcpus_) AddTo(of_vcpus, vcpu.times);
  for (size_t state = 0; state < kThreadStates; ++state) {
    if (of_handlers[state] <= of_vcpus[state]) continue;
    return InternalError("{}: handlers of interrupts took {} cycles of vCPUs' {}",
                         ToString(domain()), of_handlers[state], of_vcpus[state]);
  }
  return absl::OkStatus();
}

absl::Status ThreadStates::CheckSyscalls() const {
  std::vector<StateTimes> sums(threads_.size());
  for (const Syscall& call : syscalls_.All()) {
    StateTimes& sum = sums[call.thread];
    for (size_t state = 0; state < kThreadStates; ++state) {
      sum[state] += call.times[state];
      if (sum[state] <= threads_[call.thread].times[state]) continue;
      return InternalError("{}: the thread {} was in system calls for longer than it lived",
                           ToString(domain()), threads_[call.thread].tid);
    }
  }
  return absl::OkStatus();
}

// A thread may wait for a lock within its wait for another one: only those of one lock add up.
absl::Status ThreadStates::CheckLocks() const {
  for (const LockWait& wait : locks_.All()) {
    for (size_t state = 0; state < kThreadStates; ++state) {
      if (wait.times[state] <= threads_[wait.thread].times[state]) continue;
      return InternalError("{}: the thread {} waited for a lock for longer than it lived",
                           ToString(domain()), threads_[wait.thread].tid);
    }
    if (wait.others_stolen <= Sum(wait.times)) continue;
    return InternalError("{}: vCPUs waited for longer than the thread {} did for a lock",
                         ToString(domain()), threads_[wait.thread].tid);
  }
  return absl::OkStatus();
}

absl::Status ThreadStates::CheckCalls() const {
  const absl::Status sums = calls_.Check();
  if (!sums.ok()) return InContext(sums, ToString(domain()));
  std::vector<StateTimes> in_calls(threads_.size());
  for (const CallNode& node : calls_.nodes()) {
    if (node.caller != CallNode::kNone) continue;
    StateTimes& sum = in_calls[node.thread];
    AddTo(sum, node.total);
    for (size_t state = 0; state < kThreadStates; ++state) {
      if (sum[state] <= threads_[node.thread].times[state]) continue;
      return InternalError("{}: the thread {} was in functions for longer than it lived",
                           ToString(domain()), threads_[node.thread].tid);
    }
  }
  return absl::OkStatus();
}

absl::Status ThreadStates::CheckInXen() const {
  std::vector<Cycles> sums(threads_.size());
  for (const XenTime& time : xen_times_.All()) sums[time.thread] += time.time;
  for (size_t i = 0; i < threads_.size(); ++i) {
    const Cycles in_xen = threads_[i].times[static_cast<size_t>(ThreadState::kXen)];
    if (sums[i] == in_xen) continue;
    return InternalError("{}: the thread {} was in Xen for {} cycles, by reason for {}",
                         ToString(domain()), threads_[i].tid, in_xen, sums[i]);
  }
  return absl::OkStatus();
}

uint64_t ThreadStates::events() const {
  uint64_t events = 0;
  for (const CpuCursor& cursor : cursors_) events += cursor.events();
  return events;
}

KernelTraceFaults ThreadStates::faults() const {
  KernelTraceFaults sum;
  for (const CpuCursor& cursor : cursors_) sum.Add(cursor.faults());
  return sum;
}

}  // namespace xenoscope::guests
