// Time in bins of equal length, as pictures have it: what vCPUs did, who ran on pCPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "correlate/timeline.h"

namespace xenoscope::report {

// Calls part(bin, cycles) for each bin that has a part of [begin, end), in order.
template <typename F>
void ForEachBin(uint64_t begin, uint64_t end, uint64_t bin, F part) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t next = std::min(end, (at / bin + 1) * bin);
    part(at / bin, static_cast<float>(next - at));
    at = next;
  }
}

// What a vCPU did with its time.
enum class VcpuActivity : uint8_t {
  kGuest,      // ran, in the guest
  kXen,        // ran, in the hypervisor
  kUndivided,  // ran; PV, or nothing known of the inside
  kRunnable,   // waited for a pCPU
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

// Of a vCPU that does not run; nothing where it is offline, lost or unknown.
inline std::optional<VcpuActivity> WaitActivityOf(correlate::TimelineState state) {
  if (state == correlate::TimelineState::kRunnable) return VcpuActivity::kRunnable;
  if (state == correlate::TimelineState::kBlocked) return VcpuActivity::kBlocked;
  return std::nullopt;
}

// A vCPU's cycles in a bin.
struct VcpuBin {
  std::array<float, kVcpuActivities> cycles{};
  float& operator[](VcpuActivity activity) { return cycles[static_cast<size_t>(activity)]; }
  float operator[](VcpuActivity activity) const { return cycles[static_cast<size_t>(activity)]; }
};

// How long a pCPU was busy in a bin, and with whom most, by Boyer and Moore's majority vote over
// time ("MJRTY", 1991): right where somebody had more than half of it.
struct PcpuBin {
  float busy = 0;  // cycles
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
