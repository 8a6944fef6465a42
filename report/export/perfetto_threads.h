// Writes the threads of dom0 and of guests into a Perfetto trace. Each domain is a machine: its
// vCPUs are the CPUs, its processes and threads have the numbers that its kernel gave them, and the
// scheduler's events are those of its kernel, on the host's clock. Perfetto makes of these which
// thread ran on which vCPU, the states of threads, and who woke them. What only Xen knows are
// slices of the thread: while its kernel believes that it runs, its vCPU may wait for a pCPU.
//
// A wake-up is an instant of the thread that woke another one, with a flow to an instant of that.
// Flows between machines are no use: Perfetto drops them. On the host's machine each vCPU has a
// track of the threads that its kernel put on it, and tracks of the handlers of its interrupts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_observer.h"
#include "guests/threads/thread_states.h"
#include "report/export/perfetto_packets.h"
#include "report/export/perfetto_sched.h"

namespace xenoscope::report {

class PerfettoThreads final : public guests::ThreadObserver {
 public:
  // Numbers that no Linux gives: its own are below 2^22. The process of threads of which it is not
  // known,
  static constexpr uint32_t kUnknownPid = 0x7fff'ffff;
  // what runs on a CPU of which that is not known; its number is added,
  static constexpr uint32_t kUnknownTid = 0x7fff'0000;
  // and the threads that share one (ThreadStates::kMaxThreads).
  static constexpr uint32_t kSharedTid = 0x7ffe'0000;

  // `named` have followed all events, so that they have the threads' names. `host` takes the
  // packets of machine 0. `label` names a domain, `vcpu_track` returns the track of a vCPU there.
  // All outlive this.
  PerfettoThreads(std::span<const guests::ThreadStates> named, PerfettoPackets& host,
                  std::function<std::string(DomainId)> label,
                  std::function<uint64_t(VcpuRef)> vcpu_track);

  // The number of the domain's machine: 0 is the host, which is Xen's.
  static uint32_t MachineOf(DomainId domain) { return uint32_t{domain.value} + 1; }

  void OnInterval(const guests::ThreadInterval& interval) override;
  void OnWakeup(const guests::ThreadWakeup& wakeup) override;
  void OnSwitch(const guests::ThreadSwitch& to) override;
  void OnNewThread(const guests::NewThread& added) override;
  void OnHandler(const guests::HandlerRun& run) override;
  // Writes what is left. Errors: the sink's first one.
  absl::Status Finish();

  // Returns the number of the scheduler's events that are left out (PerfettoSched::left_out).
  [[nodiscard]] uint64_t left_out() const;

 private:
  struct Thread {
    uint64_t track = 0;  // 0: none yet
    std::string name;
    Tsc end;                                               // of what is written, or in `open`
    std::optional<std::pair<TscRange, const char*>> open;  // a slice that may go on
  };
  // The handlers of a vCPU's interrupts, or what these left to do.
  struct Handlers {
    uint64_t track = 0;  // 0: none yet
    Tsc end;             // of what is written
  };
  struct Vcpu {
    uint64_t track = 0;
    TscRange range;  // of the thread on it
    size_t thread = 0;
    bool open = false;
    bool is_switched = false;  // a switch is written
    Handlers irqs{};
    Handlers softirqs{};
  };
  struct Domain {
    Domain(const guests::ThreadStates& of, const PerfettoPackets& host, const std::string& name);

    const guests::ThreadStates* states;
    PerfettoPackets packets;
    PerfettoSched sched{packets};
    std::vector<Thread> threads;
    std::vector<Vcpu> vcpus;
    absl::flat_hash_map<size_t, uint32_t> pids;  // by process
  };

  Domain* Find(DomainId id);
  // Returns the thread's track. If it is new, the thread is described: it has begun by then.
  uint64_t TrackOf(Domain& domain, size_t thread, Tsc at);
  uint32_t PidOf(Domain& domain, size_t process, uint64_t from);
  // Returns what the scheduler's events call the thread, which is described.
  PerfettoSched::Thread OnCpu(Domain& domain, uint32_t cpu, std::optional<size_t> thread, Tsc at);
  void PutState(Domain& domain, size_t thread);
  void PutOnVcpu(Domain& domain, uint32_t cpu);
  void Run(Domain& domain, uint32_t cpu, size_t thread, TscRange range);

  PerfettoPackets& host_;
  std::function<std::string(DomainId)> label_;
  std::function<uint64_t(VcpuRef)> vcpu_track_;
  std::deque<Domain> domains_;  // not moved: they point into themselves
  uint32_t processes_ = 0;
  uint32_t tracks_ = 0;
  uint64_t flows_ = 0;
};

}  // namespace xenoscope::report
