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
enum class Doing : uint8_t {
  kGuest,     // ran, in the guest
  kXen,       // ran, in the hypervisor
  kWhole,     // ran; PV, or nothing known of the inside
  kRunnable,  // waited for a pCPU
  kBlocked,
};
inline constexpr size_t kDoings = 5;

inline Doing DoingOf(correlate::SegmentKind kind) {
  switch (kind) {
    case correlate::SegmentKind::kGuest:
      return Doing::kGuest;
    case correlate::SegmentKind::kWhole:
      return Doing::kWhole;
    case correlate::SegmentKind::kExit:
    case correlate::SegmentKind::kResume:
      break;
  }
  return Doing::kXen;
}

// Of a vCPU that does not run; nothing where it is offline, lost or unknown.
inline std::optional<Doing> WaitingAs(correlate::RunState state) {
  if (state == correlate::RunState::kRunnable) return Doing::kRunnable;
  if (state == correlate::RunState::kBlocked) return Doing::kBlocked;
  return std::nullopt;
}

// A vCPU's cycles in a bin.
struct VcpuBin {
  std::array<float, kDoings> cycles{};
  float& operator[](Doing doing) { return cycles[static_cast<size_t>(doing)]; }
  float operator[](Doing doing) const { return cycles[static_cast<size_t>(doing)]; }
};

// How long a pCPU was busy in a bin, and with whom most, by Boyer and Moore's majority vote over
// time ("MJRTY", 1991): right where somebody had more than half of it.
struct BusyBin {
  float busy = 0;  // cycles
  uint32_t who = 0;
  float lead = 0;

  void Add(uint32_t vcpu, float cycles) {
    busy += cycles;
    if (who == vcpu) {
      lead += cycles;
    } else if (cycles > lead) {
      who = vcpu;
      lead = cycles - lead;
    } else {
      lead -= cycles;
    }
  }
};

}  // namespace xenoscope::report
