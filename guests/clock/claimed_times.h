// What domains' kernels say that their vCPUs did (/proc/stat), beside what Xen's trace says.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/clock/kernel_clock.h"
#include "guests/ftrace/kernel_trace.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {

// A vCPU between the first and the last reading of what its kernel says.
struct ClaimedTimes {
  VcpuRef vcpu;
  TscRange range;       // from the begin of the first reading to that of the last one
  Cycles readings = 0;  // the length of both readings together: so far off `range` may be
  // What the kernel says, in ns. Each is a difference of sums of figures in whole steps
  // (recording::kCpuTimesStep): five of busy, two of idle, one of steal. So many steps it may be
  // off.
  static constexpr uint64_t kStepsOfBusy = 5;
  static constexpr uint64_t kStepsOfIdle = 2;
  static constexpr uint64_t kStepsOfSteal = 1;
  uint64_t busy = 0;
  uint64_t idle = 0;  // and iowait
  uint64_t steal = 0;
  // What Xen's trace says: they add up to the range.
  Cycles ran = 0;
  Cycles waited = 0;   // for a pCPU
  Cycles blocked = 0;  // in Xen
  Cycles offline = 0;
  Cycles unknown = 0;
};

// A vCPU whose claims are not compared.
struct LeftOutClaims {
  VcpuRef vcpu;
  const char* why;  // follows "what its kernel says of its time"
  bool operator==(const LeftOutClaims& other) const {
    return vcpu == other.vcpu && std::string_view(why) == other.why;
  }
};

struct Claims {
  std::vector<ClaimedTimes> vcpus;  // by domain and vCPU
  std::vector<LeftOutClaims> left_out;
};

// Compares what the traces' kernels say with Xen's trace, in one pass over that; null: there is
// none, and nothing true is known. `clocks` are those of the traces, `tsc` is the host's. Errors
// (Internal): the times of a vCPU are not its range. Memory: O(vCPUs).
absl::StatusOr<Claims> CompareClaims(std::span<const KernelTrace* const> traces,
                                     std::span<const KernelClock> clocks, Clock tsc,
                                     const trace::TraceFile* xen);

}  // namespace xenoscope::guests
