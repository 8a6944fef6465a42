// Time in bins of equal length, for pictures: the activity of vCPUs, and the vCPUs on pCPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "correlate/timeline.h"

namespace xenoscope::report {

// Calls part(bin, cycles) for each bin that overlaps the half-open range [begin, end), in order.
// `bin` is the length of a bin in the unit of `begin`.
template <typename F>
void ForEachBin(uint64_t begin, uint64_t end, uint64_t bin, F part) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t next = std::min(end, (at / bin + 1) * bin);
    part(at / bin, static_cast<float>(next - at));
    at = next;
  }
}

// The activity of a vCPU.
enum class VcpuActivity : uint8_t {
  kGuest,      // the vCPU ran in the guest
  kXen,        // the vCPU ran in the hypervisor
  kUndivided,  // the vCPU ran: it is PV, or its mode is not known
  kRunnable,   // the vCPU waited for a pCPU
  kBlocked,
};
inline constexpr size_t kVcpuActivities = 5;

inline VcpuActivity ActivityOf(correlate::SegmentKind kind) {
  switch (kind) {
    case correlate::SegmentKind::kGuest:
      return VcpuActivity::kGuest;
    case correlate::SegmentKind::kUndivided:
      return VcpuActivity::kUndivided;
    case correlate::SegmentKind::kExit:
    case correlate::SegmentKind::kResume:
      break;
  }
  return VcpuActivity::kXen;
}

// Returns the activity of a vCPU that does not run; nothing when the vCPU is offline, lost or
// unknown.
inline std::optional<VcpuActivity> WaitActivityOf(correlate::TimelineState state) {
  if (state == correlate::TimelineState::kRunnable) return VcpuActivity::kRunnable;
  if (state == correlate::TimelineState::kBlocked) return VcpuActivity::kBlocked;
  return std::nullopt;
}

// The cycles of a vCPU in a bin, by activity.
struct VcpuBin {
  std::array<float, kVcpuActivities> cycles{};
  float& operator[](VcpuActivity activity) { return cycles[static_cast<size_t>(activity)]; }
  float operator[](VcpuActivity activity) const { return cycles[static_cast<size_t>(activity)]; }
};

// The busy time of a pCPU in a bin, and the vCPU that ran there most. The vCPU is found by Boyer
// and Moore's majority vote over time ("MJRTY", 1991). The answer is right when one vCPU had more
// than half of the busy time.
struct PcpuBin {
  float busy = 0;  // busy time in cycles
  uint32_t majority_vcpu = 0;
  float votes = 0;

  void Add(uint32_t vcpu, float cycles) {
    busy += cycles;
    if (majority_vcpu == vcpu) {
      votes += cycles;
    } else if (cycles > votes) {
      majority_vcpu = vcpu;
      votes = cycles - votes;
    } else {
      votes -= cycles;
    }
  }
};

}  // namespace xenoscope::report
