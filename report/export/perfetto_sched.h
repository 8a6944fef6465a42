// Writes which threads run on the CPUs of one machine of a Perfetto trace, as events of Linux's
// scheduler (google/perfetto, protos/perfetto/trace/ftrace). Of these Perfetto makes its tracks of
// CPUs and the states of threads, and says who woke whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/tsc.h"
#include "report/export/perfetto_packets.h"

namespace xenoscope::report {

class PerfettoSched {
 public:
  // Perfetto refuses a whole trace in which a CPU has this number or a larger one.
  static constexpr uint32_t kMaxCpus = 1024;

  // What becomes of a thread that leaves a CPU: numbers of sched_switch since Linux 4.14.
  static constexpr int64_t kRunnable = 0;
  static constexpr int64_t kSleeping = 1;
  static constexpr int64_t kPreempted = 0x100;
  // It is not known. No kernel writes this number, and Perfetto has no state then.
  static constexpr int64_t kLost = 0xfe00;

  struct Thread {
    int32_t tid = 0;  // 0: the CPU is idle
    std::string_view name = "swapper";
  };

  // `packets` outlives this.
  explicit PerfettoSched(PerfettoPackets& packets) : packets_(packets) {}

  // Put events of one CPU in the order of time. `state` is of `before`, or one of the above.
  void PutSwitch(uint32_t cpu, Tsc at, const Thread& before, int64_t state, const Thread& after);
  void PutWaking(uint32_t cpu, Tsc at, int32_t waker, const Thread& woken);
  // `begins_process`: it is the first thread of its process.
  void PutNewThread(uint32_t cpu, Tsc at, int32_t parent, const Thread& added, bool begins_process);
  // Says that events of the CPU were lost before those that come next.
  void PutLoss(uint32_t cpu);
  // Puts what is left.
  void Finish();

  // Returns the number of events that are left out: they are of CPUs that Perfetto does not take.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  struct Cpu {
    std::string bundle;  // the FtraceEventBundle that is not written yet
    bool after_loss = false;
  };

  // Puts an event of the thread. `add(message)` adds what happened.
  template <typename F>
  void Put(uint32_t cpu, Tsc at, int32_t tid, F add);
  void PutBundle(Cpu& cpu);

  PerfettoPackets& packets_;
  std::vector<Cpu> cpus_;
  uint64_t left_out_ = 0;
};

}  // namespace xenoscope::report
