// The numbers of the records that tests of analyses write: record ids, exit reasons, hypercalls. A
// record id is the event number of the table of events, with variant bits where a test needs them.
#pragma once

#include <cstdint>

#include "base/hypercalls.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/record_ids.h"
#include "trace/events.h"

namespace xenoscope::analysis {

using trace::GuestEvent;
using trace::k64Bit;
using trace::kFourLevels;  // of shadow records: paging levels of the guest
using trace::kNestedBit;

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
inline constexpr uint32_t kNestedVmentry = kVmentry | kNestedBit;
inline constexpr uint32_t kNestedVmexit = kVmexit | kNestedBit;
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

using hypercall::kGrantTableOp;
using hypercall::kIret;
using hypercall::kMmuUpdate;
using hypercall::kSchedOp;

using trace::kVmexitCpuid;
using trace::kVmexitCr3Write;
using trace::kVmexitHlt;
using trace::kVmexitIntr;
using trace::kVmexitIoio;
using trace::kVmexitNpf;
using trace::kVmexitPageFault;
using trace::kVmxCpuid;
using trace::kVmxCrAccess;
using trace::kVmxEptViolation;
using trace::kVmxExternalInterrupt;
using trace::kVmxHlt;
using trace::kVmxIoInstruction;
using trace::kVmxMsrWrite;
using trace::kVmxVmcall;

}  // namespace xenoscope::analysis
