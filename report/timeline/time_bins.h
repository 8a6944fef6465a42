// Time in bins of equal length, for pictures: the activity of vCPUs, and the vCPUs on pCPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/tsc.h"
#include "correlate/timeline.h"

namespace xenoscope::report {

// Calls part(bin, cycles) for each bin that overlaps the half-open range [begin, end) of cycles, in
// order. `bin` is the length of a bin.
template <typename F>
void ForEachBin(Cycles begin, Cycles end, Cycles bin, F part) {
  for (Cycles at = begin; at < end;) {
    const Cycles cycles = std::min(end - at, bin - at % bin);
    part(at / bin, cycles);
    at += cycles;
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

// The busy time of a pCPU in a bin, and the vCPUs that ran there longest: candidates in the way of
// Metwally, Agrawal and El Abbadi's "Space-Saving" (2005). Their times are right where no more than
// kCandidates vCPUs ran. Where more did, a vCPU that ran for longer than the busy time divided by
// kCandidates is one of them, and no candidate's time is too long by more than that. Each Merge may
// add as much to an error.
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
