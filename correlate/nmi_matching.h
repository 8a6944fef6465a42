// Finds which sample belongs to which NMI exit: an NMI that hits an HVM guest makes both a sample
// without a time and a VM exit with one (docs/method.md, section 2).
//
//   VMENTRY at R0 ---- guest runs ---- NMI at R1 = VMEXIT ---- Xen handles the NMI: sample logged
//
// On Intel the sample's address is R1, which is also the exit's RIP. On AMD, Xen 4.11 to 4.21 takes
// the NMI (at STGI) before it has copied the guest's RIP from the VMCB: the sample's address is R0,
// where the guest was entered, which follows from the exit before this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "trace/names.h"

namespace xenoscope::correlate {

inline constexpr uint32_t kSvmExitNmi = 0x61;  // VMEXIT_NMI

// Returns the reason of VM exits that NMIs cause: SVM's VMEXIT_NMI, VMX's exit for exceptions and
// NMIs (the same sources as below).
[[nodiscard]] constexpr std::optional<uint32_t> NmiExitReason(trace::Vendor vendor) {
  constexpr uint32_t kVmxExceptionOrNmi = 0;
  if (vendor == trace::Vendor::kSvm) return kSvmExitNmi;
  if (vendor == trace::Vendor::kVmx) return kVmxExceptionOrNmi;
  return std::nullopt;
}

// Whether a VM exit for `reason` was caused by an interrupt of the host: SVM's VMEXIT_INTR (AMD64
// Architecture Programmer's Manual 2, appendix C), VMX's external interrupt (Intel SDM 3, C).
[[nodiscard]] constexpr bool IsHostInterrupt(trace::Vendor vendor, uint32_t reason) {
  constexpr uint32_t kSvmIntr = 0x60;
  constexpr uint32_t kVmxExternalInterrupt = 1;
  return (vendor == trace::Vendor::kSvm && reason == kSvmIntr) ||
         (vendor == trace::Vendor::kVmx && reason == kVmxExternalInterrupt);
}

// Returns the mode of a guest's code at the address: 64-bit kernels run in the upper half of the
// address space, and the record of a VM exit has no better word for it.
[[nodiscard]] constexpr Mode ModeOfGuestCode(Address rip) {
  return rip >> 63 != 0 ? Mode::kKernel : Mode::kUser;
}

// The address that Xen logs for a sample in guest mode.
enum class LoggedRip : uint8_t {
  kOfExit,       // that of the exit, where the guest was
  kOfLastEntry,  // that of the last entry, which is stale
};

// One VM exit of a vCPU, as far as matching needs it.
struct ExitMark {
  Tsc tsc;
  PcpuId pcpu;
  uint64_t timeslice_id = 0;  // RunstateInterval::number
  Tsc timeslice_begin;        // the begin of that running interval
  uint32_t reason = 0;
  bool nested = false;
  bool nmi = false;  // the exit was caused by an NMI
  Address rip = 0;
  Context context;  // the context of Xen's work on the exit
  // The vCPU's exit before this one, of the same level of guests, if no loss lies between them.
  bool has_previous = false;
  uint32_t previous_reason = 0;
  Address previous_rip = 0;
};

// Whether the guest can have been entered at `entry` after an SVM exit for `reason` at `rip`: how
// far Xen moves RIP depends on what it emulated. Exact for the most frequent reasons; an
// instruction whose length the trace does not say may have any length up to 15 bytes.
[[nodiscard]] bool MayEnterAt(uint32_t reason, Address rip, Address entry);

// A sample logged in guest mode.
struct GuestSample {
  Address address = 0;
  Mode mode = Mode::kKernel;  // never stale: Xen reads it from the VMCB or VMCS
};

// How well the sample fits the exit, by addresses and mode.
enum class MatchQuality : uint8_t {
  kNone,    // another address, or user code in the upper half of the 64-bit address space
  kWeak,    // kernel code in the lower half, as while booting and in 32-bit guests
  kStrong,  // all agrees
};
[[nodiscard]] MatchQuality MatchQualityOf(const ExitMark& exit, const GuestSample& sample,
                                          LoggedRip rule);

struct NmiMatch {
  size_t sample = 0;  // index into the samples
  size_t exit = 0;    // index into the exits
};

// Pairs guest-mode samples of one vCPU with its NMI exits, both in the order of time: as many pairs
// as possible that fit and keep the order, and of these solutions the one with the most strong
// matches. O(samples x exits). If that is more than millions (the bracket of a domain that was
// never drained), each exit in turn gets the first sample that fits, which is as good if every exit
// has its sample.
[[nodiscard]] std::vector<NmiMatch> MatchNmiExits(std::span<const GuestSample> samples,
                                                  std::span<const ExitMark> nmi_exits,
                                                  LoggedRip rule);

}  // namespace xenoscope::correlate
