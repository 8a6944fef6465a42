// What a VM exit was about: of the handler's records between VMEXIT and VMENTRY, the one that says
// most, and the devices' ports and addresses that the handler accessed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/mode.h"
#include "base/tsc.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::correlate {

// The event that a handler recorded. Most have a number, which is in ExitContents::number.
enum class ExitKind : uint8_t {
  kNoHandler,
  kCpuid,      // leaf
  kMsrRead,    // MSR
  kMsrWrite,   // MSR
  kCrRead,     // register
  kCrWrite,    // register | kResynced
  kDrRead,     //
  kDrWrite,    //
  kXcrRead,    // register
  kXcrWrite,   // register
  kClts,       //
  kLmsw,       //
  kInterrupt,  // vector, or kNoVector
  kNmi,        //
  kSmi,        //
  kMce,        //
  kTrap,       // vector
  kTrapDebug,  //
  kHypercall,  // operation
  kHlt,        //
  kInvlpg,     //
  kRdtsc,      //
  kPortRead,   // port
  kPortWrite,  // port
  kMmioRead,   // guest-physical address; 0xa0000 for all of VGA's frame buffer
  kMmioWrite,  // as kMmioRead
  kNpf,        // p2m type | kApicPage
  kPageFault,  // FaultCase | level of the entry written << kLevelShift | flags << kShadowFlagsShift
  kShadow,     // ShadowWork
  kVlapic,     //
  kRealmode,   //
  kOthers,     // exits for which a table had no room
};

// The bit of a write to a control register that synchronised the shadow pages.
inline constexpr uint64_t kResynced = 0x100;
// The number of an interrupt whose vector the record does not hold (SVM).
inline constexpr uint64_t kNoVector = ~uint64_t{0};
// The bit of a nested page fault in the page of the local APIC.
inline constexpr uint64_t kApicPage = 0x10000;
inline constexpr int kLevelShift = 8;
// The place of the bits TRCE_SFLAG_*, which say what the shadow code did meanwhile (Xen,
// arch/x86/mm/shadow/private.h).
inline constexpr int kShadowFlagsShift = 16;

// How a page fault of a shadowed guest ended.
enum class FaultCase : uint8_t {
  kUnknown,  // no record says it
  kInjected,
  kPropagate,
  kFastPropagate,
  kFastMmio,
  kMmio,
  kFalseFastPath,
  kFixup,
  kDomainDying,
  kEmulate,
  kUnshadowUser,
  kUnshadowEventInjection,
  kUnshadowUnhandled,
};

enum class ShadowWork : uint8_t { kWrmapBruteForce, kPreallocUnpin, kResyncFull, kResyncOnly };

struct DeviceAccess {
  ExitKind kind = ExitKind::kPortRead;  // kPort* or kMmio*
  uint64_t address = 0;
};

struct ExitContents {
  static constexpr uint32_t kMaxAccesses = 4;

  // These are those of the ExitArc.
  uint64_t exit = 0;
  uint32_t reason = 0;
  bool nested = false;
  Address rip = 0;
  Cycles length = 0;
  // These are from the handler's records.
  ExitKind kind = ExitKind::kNoHandler;
  uint8_t rank = 0;  // how much `kind` says
  bool emulated = false;
  bool resync = false;  // shadow pages were synchronised
  uint64_t number = 0;
  uint32_t accesses = 0;  // the number of accesses, of which `access` has the first kMaxAccesses
  std::array<DeviceAccess, kMaxAccesses> access;

  // Forgets everything, and begins with the exit of this number (VcpuTrack::exit).
  void Open(uint64_t number_of_exit) {
    exit = number_of_exit;
    kind = ExitKind::kNoHandler;
    rank = 0;
    emulated = false;
    resync = false;
    number = 0;
    accesses = 0;
  }
  // Adds the contents of later records of the same exit. O(accesses).
  void Append(const ExitContents& later);
  // Takes a handler's record. O(1).
  void Take(const trace::Record& record);
};

// The events that ExitContents takes.
std::span<const trace::Event> HandlerEvents();
// "cpuid", "msr_write", "(no handler)".
[[nodiscard]] const char* ToString(ExitKind kind);
// "leaf 0x1", "EFER", "vcpu_op", "0x3f8 (COM1)"; empty for kinds without a number.
[[nodiscard]] std::string NumberName(ExitKind kind, uint64_t number);

}  // namespace xenoscope::correlate
