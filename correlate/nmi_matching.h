// An NMI that hits an HVM guest is two things: a sample without a time, and a VM exit with one.
// Which sample belongs to which exit (docs/method.md, section 2).
//
//   VMENTRY at R0 ---- guest runs ---- NMI at R1 = VMEXIT ---- Xen handles the NMI: sample logged
//
// On Intel the sample's address is R1, which is also the exit's RIP. On AMD, Xen 4.11 to 4.21 takes
// the NMI (at STGI) before it has copied the guest's RIP from the VMCB: the sample's address is R0,
// where the guest was entered, which the exit before this one tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "trace/names.h"

namespace xenoscope::correlate {

inline constexpr uint32_t kSvmExitNmi = 0x61;  // VMEXIT_NMI

// Whether a VM exit for `reason` is an interrupt of the host's: SVM's VMEXIT_INTR (AMD64
// Architecture Programmer's Manual 2, appendix C), VMX's external interrupt (Intel SDM 3, C).
constexpr bool IsHostInterrupt(trace::Vendor vendor, uint32_t reason) {
  constexpr uint32_t kSvmIntr = 0x60;
  constexpr uint32_t kVmxExternalInterrupt = 1;
  return (vendor == trace::Vendor::kSvm && reason == kSvmIntr) ||
         (vendor == trace::Vendor::kVmx && reason == kVmxExternalInterrupt);
}

// Which address Xen logs for a sample in guest mode.
enum class LoggedRip : uint8_t {
  kOfExit,       // where the guest was
  kOfLastEntry,  // where the guest was entered: stale
};

// One VM exit of a vCPU, as far as matching needs it.
struct ExitMark {
  Tsc tsc;
  PcpuId pcpu;
  uint64_t timeslice_id = 0;  // RunstateInterval::number
  Tsc timeslice_begin;        // when that began
  uint32_t reason = 0;
  bool nested = false;
  bool nmi = false;  // it was the NMI
  Address rip = 0;
  Context context;  // of Xen, at work on it
  // The exit before this one of the same vCPU, when no loss lies between them.
  bool has_previous = false;
  uint32_t previous_reason = 0;
  Address previous_rip = 0;
};

// Whether the guest can have been entered at `entry` after an SVM exit for `reason` at `rip`: how
// far Xen moves RIP depends on what it emulated. Exact for what guests do most; for instructions
// whose length the trace does not tell, any length up to 15.
bool MayEnterAt(uint32_t reason, Address rip, Address entry);

// A sample logged in guest mode.
struct GuestSample {
  Address address = 0;
  Mode mode = Mode::kKernel;  // true in any case: Xen reads it from the VMCB or VMCS
};

// How well the sample goes with the exit, as far as addresses and mode tell.
enum class MatchQuality : uint8_t {
  kNone,  // the address is another, or user code in the upper half of the 64-bit address space
  kWeak,  // kernel code in the lower half: so while booting, and in 32-bit guests
  kStrong,
};
MatchQuality MatchQualityOf(const ExitMark& exit, const GuestSample& sample, LoggedRip rule);

struct NmiMatch {
  size_t sample = 0;  // index into the samples
  size_t exit = 0;    // index into the exits
};

// Pairs guest-mode samples of one vCPU with its NMI exits, both in order of time: as many as
// possible so that they fit and the order is kept, then as many good fits as possible.
// O(samples x exits); where that is more
// than millions (the bracket of a domain that was never drained), each exit in turn gets the first
// sample that fits, which is as good while every exit has its sample.
std::vector<NmiMatch> MatchNmiExits(std::span<const GuestSample> samples,
                                    std::span<const ExitMark> nmi_exits, LoggedRip rule);

}  // namespace xenoscope::correlate
