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

// The busy time of a pCPU in a bin, and the vCPUs that ran there most: candidates in the way of
// Metwally, Agrawal and El Abbadi's "Space-Saving" (2005). Their times are right if there are no
// more than kCandidates of them. Else any vCPU that ran for more than a part of kCandidates of the
// busy time is one of them, and no time is too long by more than that.
class PcpuBin {
 public:
  static constexpr size_t kCandidates = 8;

  // Adds time of the vCPU, in cycles. O(kCandidates).
  void Add(uint32_t vcpu, float cycles) {
    busy_ += cycles;
    AddToCandidate(vcpu, cycles);
  }
  void Merge(const PcpuBin& other) {
    busy_ += other.busy_;
    for (const Candidate& each : other.candidates_) {
      if (each.cycles > 0) AddToCandidate(each.vcpu, each.cycles);
    }
  }
  // The busy time in cycles.
  [[nodiscard]] float busy() const { return busy_; }
  // Returns the vCPU that ran longest; 0 if none did.
  [[nodiscard]] uint32_t LongestVcpu() const {
    return std::ranges::max_element(candidates_, {}, &Candidate::cycles)->vcpu;
  }

 private:
  struct Candidate {
    uint32_t vcpu = 0;
    float cycles = 0;  // 0: there is none
  };

  void AddToCandidate(uint32_t vcpu, float cycles) {
    Candidate* least = candidates_.data();
    for (Candidate& each : candidates_) {
      if (each.vcpu == vcpu && each.cycles > 0) {
        each.cycles += cycles;
        return;
      }
      if (each.cycles < least->cycles) least = &each;
    }
    least->vcpu = vcpu;
    least->cycles += cycles;
  }

  float busy_ = 0;
  std::array<Candidate, kCandidates> candidates_{};
};

}  // namespace xenoscope::report
