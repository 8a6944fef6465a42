#include "report/export/perfetto_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/threads/container_name.h"
#include "guests/threads/numbered_name.h"
#include "report/markup.h"
#include "report/threads/interrupts_view.h"

namespace xenoscope::report {
namespace {

using guests::GuestProcess;
using guests::GuestThread;
using guests::ThreadState;
using perfetto::EventField;
using perfetto::kInstant;
using perfetto::kSliceBegin;
using perfetto::Message;

// Apart from PerfettoWriter's tracks, which are the number of a kind times 2^32, and below 2^36.
constexpr uint64_t kFirstProcessTrack = uint64_t{1} << 40;
constexpr uint64_t kFirstThreadTrack = uint64_t{2} << 40;
constexpr uint64_t kFirstVcpuTrack = uint64_t{3} << 40;
constexpr uint64_t kFirstIrqTrack = uint64_t{4} << 40;
constexpr uint64_t kFirstSoftirqTrack = uint64_t{5} << 40;

// What a slice of the thread is called, where Perfetto does not know it from the scheduler's
// events. VM exits are on the track of the vCPU.
const char* SliceName(ThreadState state) {
  switch (state) {
    case ThreadState::kStolen:
      return "stolen";
    case ThreadState::kHalted:
      return "halted";
    case ThreadState::kUntraced:
      return "untraced";
    case ThreadState::kVcpuLost:
      return "trace lost";
    case ThreadState::kLost:
      return "events lost";
    case ThreadState::kGuest:
    case ThreadState::kXen:
    case ThreadState::kWoken:
    case ThreadState::kPreempted:
    case ThreadState::kSleeping:
    case ThreadState::kUninterruptible:
      break;
  }
  return nullptr;
}

// Returns what the switch says of the thread that leaves the vCPU. Bits above the lower 8 say that
// it was preempted; which one does depends on the kernel.
int64_t StateOf(const guests::ThreadSwitch& to) {
  if (!to.state) return PerfettoSched::kLost;
  if (guests::WasPreempted(*to.state)) return PerfettoSched::kPreempted;
  return static_cast<int64_t>(*to.state & 0xff);
}

// Returns the number of the vCPU's track, of those that begin at `first`.
uint64_t TrackOfVcpu(uint64_t first, DomainId domain, uint32_t cpu) {
  return first + (uint64_t{domain.value} << 16) + cpu;
}

}  // namespace

PerfettoThreads::Domain::Domain(const guests::ThreadStates& of, const PerfettoPackets& host,
                                const std::string& name)
    : states(&of),
      packets(host.ForMachine(MachineOf(of.domain()), name)),
      threads(of.threads().size()),
      vcpus(of.vcpus().size()) {}

PerfettoThreads::PerfettoThreads(std::span<const guests::ThreadStates> named, PerfettoPackets& host,
                                 std::function<std::string(DomainId)> label,
                                 std::function<uint64_t(VcpuRef)> vcpu_track)
    : host_(host), label_(std::move(label)), vcpu_track_(std::move(vcpu_track)) {
  for (const guests::ThreadStates& states : named) {
    domains_.emplace_back(states, host, label_(states.domain()));
  }
}

PerfettoThreads::Domain* PerfettoThreads::Find(DomainId id) {
  const auto found =
      std::ranges::find(domains_, id, [](const Domain& domain) { return domain.states->domain(); });
  return found == domains_.end() ? nullptr : &*found;
}

uint32_t PerfettoThreads::PidOf(Domain& domain, size_t process, uint64_t from) {
  const GuestProcess& described = domain.states->processes()[process];
  const uint32_t pid = process == 0 ? kUnknownPid : described.pid;
  if (!domain.pids.try_emplace(process, pid).second) return pid;
  const std::string container = guests::ContainerName(described.cgroup);
  domain.packets.PutProcess(
      kFirstProcessTrack + processes_++, pid,
      fmt::format("{}{}{}: {}", label_(domain.states->domain()), container.empty() ? "" : ", ",
                  container, process == 0 ? "[process not known]" : described.name),
      from);
  return pid;
}

uint64_t PerfettoThreads::TrackOf(Domain& domain, size_t index, Tsc at) {
  Thread& thread = domain.threads[index];
  if (thread.track != 0) return thread.track;
  const GuestThread& described = domain.states->threads()[index];
  thread.name = Printable(described.name);
  thread.track = kFirstThreadTrack + tracks_++;
  // After the event by which it begins.
  const uint64_t from = domain.packets.Time(at) + 1;
  const uint32_t pid = PidOf(domain, described.process, from);
  domain.packets.PutThread(thread.track, pid, described.tid, described.name, from);
  return thread.track;
}

PerfettoSched::Thread PerfettoThreads::OnCpu(Domain& domain, uint32_t cpu,
                                             std::optional<size_t> thread, Tsc at) {
  if (!thread) return {static_cast<int32_t>(kUnknownTid + cpu), "[not known]"};
  if (*thread == guests::ThreadStates::kMaxThreads) return {kSharedTid, "[other threads]"};
  const uint32_t tid = domain.states->threads()[*thread].tid;
  if (tid == 0) return {};
  TrackOf(domain, *thread, at);
  return {static_cast<int32_t>(tid), domain.threads[*thread].name};
}

void PerfettoThreads::OnInterval(const guests::ThreadInterval& interval) {
  Domain* const domain = Find(interval.domain);
  if (domain == nullptr || interval.thread >= domain->threads.size()) return;
  if (interval.cpu) Run(*domain, *interval.cpu, interval.thread, interval.range);
  // The idle threads' states are those of their vCPUs.
  if (domain->states->threads()[interval.thread].tid == 0) return;
  const char* const name = SliceName(interval.state);
  if (name == nullptr) return;
  Thread& thread = domain->threads[interval.thread];
  const TscRange range{std::max(interval.range.begin, thread.end), interval.range.end};
  if (range.Empty()) return;
  thread.end = range.end;
  if (thread.open && thread.open->second == name && thread.open->first.end == range.begin) {
    thread.open->first.end = range.end;
    return;
  }
  PutState(*domain, interval.thread);
  thread.open.emplace(range, name);
}

void PerfettoThreads::PutState(Domain& domain, size_t index) {
  Thread& thread = domain.threads[index];
  if (!thread.open) return;
  const auto& [range, name] = *thread.open;
  domain.packets.PutSlice(TrackOf(domain, index, range.begin), range, name);
  thread.open.reset();
}

void PerfettoThreads::OnSwitch(const guests::ThreadSwitch& to) {
  Domain* const domain = Find(to.domain);
  if (domain == nullptr || to.cpu >= domain->vcpus.size()) return;
  const bool is_first = !std::exchange(domain->vcpus[to.cpu].is_switched, true);
  const PerfettoSched::Thread before =
      is_first ? PerfettoSched::Thread{} : OnCpu(*domain, to.cpu, to.before, to.at);
  const PerfettoSched::Thread after = OnCpu(*domain, to.cpu, to.after, to.at);
  if (!is_first && !to.after) domain->sched.PutLoss(to.cpu);
  // An idle CPU's thread has no state, nor what is not known.
  const bool has_state = to.before && before.tid != 0;
  domain->sched.PutSwitch(to.cpu, to.at, before, has_state ? StateOf(to) : PerfettoSched::kRunnable,
                          after);
}

void PerfettoThreads::OnNewThread(const guests::NewThread& added) {
  Domain* const domain = Find(added.domain);
  if (domain == nullptr || std::max(added.thread, added.parent) >= domain->threads.size()) return;
  const GuestThread& described = domain->states->threads()[added.thread];
  if (described.tid == 0) return;
  const bool begins_process = described.process != domain->states->threads()[added.parent].process;
  const int32_t parent = OnCpu(*domain, added.cpu, added.parent, added.at).tid;
  const PerfettoSched::Thread thread = OnCpu(*domain, added.cpu, added.thread, added.at);
  domain->sched.PutNewThread(added.cpu, added.at, parent, thread, begins_process);
}

void PerfettoThreads::Run(Domain& domain, uint32_t cpu, size_t thread, TscRange range) {
  if (cpu >= domain.vcpus.size()) return;
  Vcpu& vcpu = domain.vcpus[cpu];
  if (vcpu.open && vcpu.thread == thread && vcpu.range.end == range.begin) {
    vcpu.range.end = range.end;
    return;
  }
  PutOnVcpu(domain, cpu);
  vcpu.open = domain.states->threads()[thread].tid != 0;
  vcpu.thread = thread;
  vcpu.range = range;
}

void PerfettoThreads::PutOnVcpu(Domain& domain, uint32_t cpu) {
  Vcpu& vcpu = domain.vcpus[cpu];
  if (!vcpu.open) return;
  vcpu.open = false;
  const VcpuRef ref{domain.states->domain(), VcpuId{cpu}};
  if (vcpu.track == 0) {
    vcpu.track = TrackOfVcpu(kFirstVcpuTrack, ref.domain, cpu);
    host_.PutTrack(vcpu.track, vcpu_track_(ref), "threads");
  }
  const GuestThread& thread = domain.states->threads()[vcpu.thread];
  host_.PutText(vcpu.track, vcpu.range.begin, kSliceBegin,
                guests::NumberedName(thread.name, thread.tid));
  host_.PutSliceEnd(vcpu.track, vcpu.range.end);
}

void PerfettoThreads::OnWakeup(const guests::ThreadWakeup& wakeup) {
  Domain* const domain = Find(wakeup.domain);
  if (domain == nullptr || std::max(wakeup.waker, wakeup.woken) >= domain->threads.size()) return;
  const PerfettoSched::Thread waker = OnCpu(*domain, wakeup.cpu, wakeup.waker, wakeup.at);
  const PerfettoSched::Thread woken = OnCpu(*domain, wakeup.cpu, wakeup.woken, wakeup.at);
  domain->sched.PutWaking(wakeup.cpu, wakeup.at, waker.tid, woken);
  // An idle thread wakes nobody by itself, and has no track.
  const auto& threads = domain->states->threads();
  if (threads[wakeup.waker].tid == 0 || threads[wakeup.woken].tid == 0) return;
  const uint64_t flow = ++flows_;
  const auto put = [&](size_t on, const char* what, size_t other, perfetto::EventField flows) {
    const std::string title = guests::NumberedName(threads[other].name, threads[other].tid);
    domain->packets.PutEvent(
        TrackOf(*domain, on, wakeup.at), wakeup.at, kInstant, [&](Message<EventField>& event) {
          event.add_string(EventField::kName, Printable(fmt::format("{} {}", what, title)));
          event.add_fixed64(flows, flow);
        });
  };
  put(wakeup.waker, "wakes", wakeup.woken, EventField::kFlows);
  put(wakeup.woken, "woken by", wakeup.waker, EventField::kEndedFlows);
}

void PerfettoThreads::OnHandler(const guests::HandlerRun& run) {
  Domain* const domain = Find(run.domain);
  if (domain == nullptr || run.cpu >= domain->vcpus.size()) return;
  Vcpu& vcpu = domain->vcpus[run.cpu];
  Handlers& handlers = run.of.is_soft ? vcpu.softirqs : vcpu.irqs;
  // Kernels do not interrupt a handler by another one of its kind; events may say that they do.
  const TscRange range{std::max(run.range.begin, handlers.end), run.range.end};
  if (range.Empty()) return;
  if (handlers.track == 0) {
    handlers.track =
        TrackOfVcpu(run.of.is_soft ? kFirstSoftirqTrack : kFirstIrqTrack, run.domain, run.cpu);
    host_.PutTrack(handlers.track, vcpu_track_({run.domain, VcpuId{run.cpu}}),
                   run.of.is_soft ? "softirqs" : "irqs");
  }
  handlers.end = range.end;
  host_.PutText(handlers.track, range.begin, kSliceBegin, HandlerTitle(run.of));
  host_.PutSliceEnd(handlers.track, range.end);
}

absl::Status PerfettoThreads::Finish() {
  for (Domain& domain : domains_) {
    for (size_t i = 0; i < domain.threads.size(); ++i) PutState(domain, i);
    for (uint32_t cpu = 0; cpu < domain.vcpus.size(); ++cpu) PutOnVcpu(domain, cpu);
    domain.sched.Finish();
    XENOSCOPE_RETURN_IF_ERROR(domain.packets.Finish());
  }
  return absl::OkStatus();
}

uint64_t PerfettoThreads::left_out() const {
  uint64_t left_out = 0;
  for (const Domain& domain : domains_) left_out += domain.sched.left_out();
  return left_out;
}

}  // namespace xenoscope::report
