#include "report/export/perfetto_threads.h"

#include <fmt/format.h>

#include <algorithm>

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

// What a slice is called. VM exits are on the track of the vCPU.
const char* SliceName(ThreadState state) {
  switch (state) {
    case ThreadState::kGuest:
    case ThreadState::kXen:
      return "running";
    case ThreadState::kStolen:
      return "stolen";
    case ThreadState::kHalted:
      return "halted";
    case ThreadState::kUntraced:
      return "untraced";
    case ThreadState::kVcpuLost:
      return "trace lost";
    case ThreadState::kWoken:
      return "woken";
    case ThreadState::kPreempted:
      return "preempted";
    case ThreadState::kSleeping:
      return "sleeping";
    case ThreadState::kUninterruptible:
      return "uninterruptible";
    case ThreadState::kLost:
      break;
  }
  return "events lost";
}

// Returns the number of the vCPU's track, of those that begin at `first`.
uint64_t TrackOfVcpu(uint64_t first, DomainId domain, uint32_t cpu) {
  return first + (uint64_t{domain.value} << 16) + cpu;
}

}  // namespace

PerfettoThreads::PerfettoThreads(std::span<const guests::ThreadStates> named,
                                 PerfettoPackets& packets,
                                 std::function<std::string(DomainId)> label,
                                 std::function<uint64_t(VcpuRef)> vcpu_track)
    : packets_(packets), label_(std::move(label)), vcpu_track_(std::move(vcpu_track)) {
  domains_.reserve(named.size());
  for (const guests::ThreadStates& states : named) {
    Domain& domain = domains_.emplace_back();
    domain.states = &states;
    domain.threads.resize(states.threads().size());
    domain.vcpus.resize(states.vcpus().size());
  }
}

PerfettoThreads::Domain* PerfettoThreads::Find(DomainId id) {
  const auto found =
      std::ranges::find(domains_, id, [](const Domain& domain) { return domain.states->domain(); });
  return found == domains_.end() ? nullptr : &*found;
}

uint32_t PerfettoThreads::PidOf(Domain& domain, size_t process) {
  const auto [found, is_new] = domain.pids.try_emplace(process, kFirstPid + processes_);
  if (!is_new) return found->second;
  const GuestProcess& described = domain.states->processes()[process];
  const std::string container = guests::ContainerName(described.cgroup);
  const std::string name =
      process == 0 ? "[other threads]" : guests::NumberedName(described.name, described.pid);
  packets_.PutProcess(kFirstProcessTrack + processes_++, found->second,
                      fmt::format("{}{}{}: {}", label_(domain.states->domain()),
                                  container.empty() ? "" : ", ", container, name));
  return found->second;
}

uint64_t PerfettoThreads::TrackOf(Domain& domain, size_t thread) {
  uint64_t& track = domain.threads[thread].track;
  if (track != 0) return track;
  const GuestThread& described = domain.states->threads()[thread];
  const uint32_t pid = PidOf(domain, described.process);
  track = kFirstThreadTrack + tracks_;
  packets_.PutThread(track, pid, kFirstTid + tracks_++,
                     guests::NumberedName(described.name, described.tid));
  return track;
}

void PerfettoThreads::OnInterval(const guests::ThreadInterval& interval) {
  Domain* const domain = Find(interval.domain);
  if (domain == nullptr || interval.thread >= domain->threads.size()) return;
  if (interval.cpu) Run(*domain, *interval.cpu, interval.thread, interval.range);
  // The idle threads' states are those of their vCPUs.
  if (domain->states->threads()[interval.thread].tid == 0) return;
  Thread& thread = domain->threads[interval.thread];
  const TscRange range{std::max(interval.range.begin, thread.end), interval.range.end};
  if (range.Empty()) return;
  const char* const name = SliceName(interval.state);
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
  const uint64_t track = TrackOf(domain, index);
  const auto& [range, name] = *thread.open;
  const uint64_t number = packets_.NameNumber(name);
  // Its first slice since then: "woken", or that events were lost.
  const uint64_t flow = std::exchange(thread.woken_by, 0);
  packets_.PutEvent(track, range.begin, kSliceBegin, [&](Message<EventField>& event) {
    event.add_uint64(EventField::kNameIid, number);
    if (flow != 0) event.add_fixed64(EventField::kEndedFlows, flow);
  });
  packets_.PutSliceEnd(track, range.end);
  thread.open.reset();
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
    packets_.PutTrack(vcpu.track, vcpu_track_(ref), "threads");
  }
  const GuestThread& thread = domain.states->threads()[vcpu.thread];
  packets_.PutText(vcpu.track, vcpu.range.begin, kSliceBegin,
                   guests::NumberedName(thread.name, thread.tid));
  packets_.PutSliceEnd(vcpu.track, vcpu.range.end);
}

void PerfettoThreads::OnWakeup(const guests::ThreadWakeup& wakeup) {
  Domain* const domain = Find(wakeup.domain);
  if (domain == nullptr || std::max(wakeup.waker, wakeup.woken) >= domain->threads.size()) return;
  const GuestThread& waker = domain->states->threads()[wakeup.waker];
  if (waker.tid == 0) return;
  // What the thread did before is written first, so that the flow is that of its next slice.
  PutState(*domain, wakeup.woken);
  const uint64_t flow = ++flows_;
  domain->threads[wakeup.woken].woken_by = flow;
  const GuestThread& woken = domain->states->threads()[wakeup.woken];
  packets_.PutEvent(
      TrackOf(*domain, wakeup.waker), wakeup.at, kInstant, [&](Message<EventField>& event) {
        event.add_string(
            EventField::kName,
            Printable(fmt::format("wakes {}", guests::NumberedName(woken.name, woken.tid))));
        event.add_fixed64(EventField::kFlows, flow);
      });
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
    packets_.PutTrack(handlers.track, vcpu_track_({run.domain, VcpuId{run.cpu}}),
                      run.of.is_soft ? "softirqs" : "irqs");
  }
  handlers.end = range.end;
  packets_.PutText(handlers.track, range.begin, kSliceBegin, HandlerTitle(run.of));
  packets_.PutSliceEnd(handlers.track, range.end);
}

void PerfettoThreads::Finish() {
  for (Domain& domain : domains_) {
    for (size_t i = 0; i < domain.threads.size(); ++i) PutState(domain, i);
    for (uint32_t cpu = 0; cpu < domain.vcpus.size(); ++cpu) PutOnVcpu(domain, cpu);
  }
}

}  // namespace xenoscope::report
