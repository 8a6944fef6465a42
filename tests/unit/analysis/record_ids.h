// The numbers with which small traces are written: record ids, exit reasons, hypercalls. An id is
// the event's number in the table of events, with variant bits where a test needs them.
#pragma once

#include <cstdint>

#include "base/hypercalls.h"
#include "trace/events.h"

namespace xenoscope::analysis {

inline constexpr uint32_t k64Bit = 0x100;         // TRC_64_FLAG: addresses have 64 bits
inline constexpr uint32_t kNested = 0x400;        // TRC_HVM_NESTEDFLAG
inline constexpr uint32_t kFourLevels = 2U << 8;  // of shadow records: paging levels of the guest

inline constexpr uint32_t kLostRecords = IdOf(trace::Event::kLostRecords);
inline constexpr uint32_t kWrapBuffer = IdOf(trace::Event::kTraceWrapBuffer);

inline constexpr uint32_t kSchedWake = IdOf(trace::Event::kSchedWake);
inline constexpr uint32_t kSchedBlock = IdOf(trace::Event::kSchedBlock);
inline constexpr uint32_t kSwitchInfnext = IdOf(trace::Event::kSchedSwitchInfnext);
inline constexpr uint32_t kStolenVcpu = IdOf(trace::Event::kCschedStolenVcpu);
inline constexpr uint32_t kTickle = IdOf(trace::Event::kCsched2Tickle);
inline constexpr uint32_t kCreditReset = IdOf(trace::Event::kCsched2CreditReset);

inline constexpr uint32_t kVmentry = IdOf(trace::Event::kHvmVmentry);
inline constexpr uint32_t kVmexit = IdOf(trace::Event::kHvmVmexit) | k64Bit;
inline constexpr uint32_t kNestedVmexit = kVmexit | kNested;
inline constexpr uint32_t kPfXen = IdOf(trace::Event::kHvmPfXen) | k64Bit;
inline constexpr uint32_t kInjVirq = IdOf(trace::Event::kHvmInjVirq);
inline constexpr uint32_t kCrWrite = IdOf(trace::Event::kHvmCrWrite) | k64Bit;
inline constexpr uint32_t kMsrWrite = IdOf(trace::Event::kHvmMsrWrite);
inline constexpr uint32_t kCpuid = IdOf(trace::Event::kHvmCpuid);
inline constexpr uint32_t kIntr = IdOf(trace::Event::kHvmIntr);
inline constexpr uint32_t kVmmcall = IdOf(trace::Event::kHvmVmmcall);
inline constexpr uint32_t kHlt = IdOf(trace::Event::kHvmHlt);
inline constexpr uint32_t kIoportRead = IdOf(trace::Event::kHvmIoportRead);
inline constexpr uint32_t kMmioRead = IdOf(trace::Event::kHvmIomemRead) | k64Bit;
inline constexpr uint32_t kMmioWrite = IdOf(trace::Event::kHvmIomemWrite) | k64Bit;
inline constexpr uint32_t kNpf = IdOf(trace::Event::kHvmNpf);
inline constexpr uint32_t kPitCallback = IdOf(trace::Event::kHvmEmulPitTimerCb);
inline constexpr uint32_t kLapicCallback = IdOf(trace::Event::kHvmEmulLapicTimerCb);

inline constexpr uint32_t kGrantMap = IdOf(trace::Event::kMemPageGrantMap);
inline constexpr uint32_t kGrantUnmap = IdOf(trace::Event::kMemPageGrantUnmap);
inline constexpr uint32_t kGrantTransfer = IdOf(trace::Event::kMemPageGrantTransfer);
inline constexpr uint32_t kDecreaseReservation = IdOf(trace::Event::kMemDecreaseReservation);
inline constexpr uint32_t kPodPopulate = IdOf(trace::Event::kMemPodPopulate);

inline constexpr uint32_t kHypercall = IdOf(trace::Event::kPvHypercallV2);
inline constexpr uint32_t kSubcall = IdOf(trace::Event::kPvHypercallSubcall);
inline constexpr uint32_t kTrap = IdOf(trace::Event::kPvTrap);
inline constexpr uint32_t kEmulatePrivop = IdOf(trace::Event::kPvEmulatePrivop);
inline constexpr uint32_t kMathStateRestore = IdOf(trace::Event::kPvMathStateRestore);
inline constexpr uint32_t kPtwr = IdOf(trace::Event::kPvPtwrEmulation);
inline constexpr uint32_t kPtwrPae = IdOf(trace::Event::kPvPtwrEmulationPae);

inline constexpr uint32_t kShadowFixup = IdOf(trace::Event::kShadowFixup) | kFourLevels;
inline constexpr uint32_t kShadowEmulate = IdOf(trace::Event::kShadowEmulate);  // of 2 levels
inline constexpr uint32_t kUnshadowUser =
    IdOf(trace::Event::kShadowEmulateUnshadowUser) | kFourLevels;
inline constexpr uint32_t kPreallocUnpin = IdOf(trace::Event::kShadowPreallocUnpin);
inline constexpr uint32_t kResyncFull = IdOf(trace::Event::kShadowResyncFull);

inline constexpr uint32_t kFreqChange = IdOf(trace::Event::kPmFreqChange);
inline constexpr uint32_t kIdleEntry = IdOf(trace::Event::kPmIdleEntry);
inline constexpr uint32_t kIdleExit = IdOf(trace::Event::kPmIdleExit);
inline constexpr uint32_t kIrqBindVector = IdOf(trace::Event::kHwIrqBindVector);
inline constexpr uint32_t kIrqMoveFinish = IdOf(trace::Event::kHwIrqMoveFinish);
inline constexpr uint32_t kIrqAssignVector = IdOf(trace::Event::kHwIrqAssignVector);
inline constexpr uint32_t kIrqUnmappedVector = IdOf(trace::Event::kHwIrqUnmappedVector);
inline constexpr uint32_t kIrqHandled = IdOf(trace::Event::kHwIrqHandled);

// An event of the guest's own, by its number below 4096.
constexpr uint32_t GuestEvent(uint32_t number) { return IdOf(trace::Event::kGuest) | number; }

// Exit reasons of VMX (Intel SDM volume 3, appendix C).
inline constexpr uint32_t kVmxExternalInterrupt = 1;
inline constexpr uint32_t kVmxCpuid = 10;
inline constexpr uint32_t kVmxHlt = 12;
inline constexpr uint32_t kVmxVmcall = 18;
inline constexpr uint32_t kVmxCrAccess = 28;
inline constexpr uint32_t kVmxIoInstruction = 30;
inline constexpr uint32_t kVmxMsrWrite = 32;
inline constexpr uint32_t kVmxEptViolation = 48;

// Exit reasons of SVM (AMD APM volume 2, appendix C).
inline constexpr uint32_t kVmexitCr3Write = 0x13;
inline constexpr uint32_t kVmexitPageFault = 0x4e;
inline constexpr uint32_t kVmexitIntr = 0x60;
inline constexpr uint32_t kVmexitCpuid = 0x72;
inline constexpr uint32_t kVmexitHlt = 0x78;
inline constexpr uint32_t kVmexitIoio = 0x7b;
inline constexpr uint32_t kVmexitNpf = 0x400;

using hypercall::kGrantTableOp;
using hypercall::kIret;
using hypercall::kMmuUpdate;
using hypercall::kSchedOp;

}  // namespace xenoscope::analysis
