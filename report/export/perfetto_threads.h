// Writes the threads of dom0 and of guests into a Perfetto trace: each process that their kernels
// have is a process, with the threads' states as slices; each vCPU has a track of the threads that
// its kernel put on it, and tracks of the handlers of its interrupts; wake-ups are flows from the
// thread that woke another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_observer.h"
#include "guests/threads/thread_states.h"
#include "report/export/perfetto_packets.h"

namespace xenoscope::report {

class PerfettoThreads final : public guests::ThreadObserver {
 public:
  // Numbers of processes and threads begin here: their own ones are those of several kernels.
  static constexpr uint32_t kFirstPid = 1'000'000;
  static constexpr uint32_t kFirstTid = 2'000'000;

  // `named` have followed all events, so that they have the threads' names. `label` names a domain,
  // `vcpu_track` returns the track of a vCPU. All outlive this.
  PerfettoThreads(std::span<const guests::ThreadStates> named, PerfettoPackets& packets,
                  std::function<std::string(DomainId)> label,
                  std::function<uint64_t(VcpuRef)> vcpu_track);

  void OnInterval(const guests::ThreadInterval& interval) override;
  void OnWakeup(const guests::ThreadWakeup& wakeup) override;
  void OnHandler(const guests::HandlerRun& run) override;
  // Writes what is left.
  void Finish();

 private:
  struct Thread {
    uint64_t track = 0;                                    // 0: none yet
    Tsc end;                                               // of what is written, or in `open`
    std::optional<std::pair<TscRange, const char*>> open;  // a slice that may go on
    uint64_t woken_by = 0;  // the flow that ends with the next slice; 0: none
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
    Handlers irqs{};
    Handlers softirqs{};
  };
  struct Domain {
    const guests::ThreadStates* states = nullptr;
    std::vector<Thread> threads;
    std::vector<Vcpu> vcpus;
    absl::flat_hash_map<size_t, uint32_t> pids;  // by process
  };

  Domain* Find(DomainId id);
  // Returns the thread's track, which is described if it is new.
  uint64_t TrackOf(Domain& domain, size_t thread);
  uint32_t PidOf(Domain& domain, size_t process);
  void PutState(Domain& domain, size_t thread);
  void PutOnVcpu(Domain& domain, uint32_t cpu);
  void Run(Domain& domain, uint32_t cpu, size_t thread, TscRange range);

  PerfettoPackets& packets_;
  std::function<std::string(DomainId)> label_;
  std::function<uint64_t(VcpuRef)> vcpu_track_;
  std::vector<Domain> domains_;
  uint32_t processes_ = 0;
  uint32_t tracks_ = 0;
  uint64_t flows_ = 0;
};

}  // namespace xenoscope::report
