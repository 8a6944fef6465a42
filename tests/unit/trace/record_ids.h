// The event numbers of the records that tests write, as Xen writes them
// (xen/include/public/trace.h). They are numbers, so that tests also check trace/event_rows.inc.
#pragma once

#include <cstdint>

#include "trace/events.h"  // before the constants: its enumerators have the same names

namespace xenoscope::trace {

// Variant bits.
inline constexpr uint32_t k64Bit = 0x100;          // TRC_64_FLAG: addresses have 64 bits
inline constexpr uint32_t kNestedBit = 0x400;      // TRC_HVM_NESTEDFLAG
inline constexpr uint32_t kThreeLevels = 1U << 8;  // of shadow records: paging levels of the guest
inline constexpr uint32_t kFourLevels = 2U << 8;

// TRC_GEN.
inline constexpr uint32_t kLostRecords = 0x1f001;
inline constexpr uint32_t kTraceWrapBuffer = 0x1f002;

// TRC_SCHED_MIN. TRC_SCHED_RUNSTATE_CHANGE by the states before and after.
inline constexpr uint32_t kRunnableToRunning = 0x21101;
inline constexpr uint32_t kRunnableToBlocked = 0x21121;
inline constexpr uint32_t kRunnableToOffline = 0x21131;
inline constexpr uint32_t kRunningToRunnable = 0x21011;
inline constexpr uint32_t kRunningToBlocked = 0x21021;
inline constexpr uint32_t kRunningToOffline = 0x21031;
inline constexpr uint32_t kBlockedToRunnable = 0x21211;
inline constexpr uint32_t kOfflineToRunnable = 0x21311;
inline constexpr uint32_t kContinueRunning = 0x21002;

// TRC_SCHED_CLASS: events of the schedulers.
inline constexpr uint32_t kCschedAccountStart = 0x22002;
inline constexpr uint32_t kCschedStolenVcpu = 0x22004;
inline constexpr uint32_t kCschedSchedule = 0x22009;
inline constexpr uint32_t kCschedRatelimit = 0x2200a;
inline constexpr uint32_t kCsched2RunqPos = 0x22202;
inline constexpr uint32_t kCsched2CreditBurn = 0x22203;
inline constexpr uint32_t kCsched2TickleCheck = 0x22205;
inline constexpr uint32_t kCsched2Tickle = 0x22206;
inline constexpr uint32_t kCsched2CreditReset = 0x22207;
inline constexpr uint32_t kCsched2UpdateLoad = 0x22209;
inline constexpr uint32_t kCsched2RunqAssign = 0x2220a;
inline constexpr uint32_t kCsched2UpdateUnitLoad = 0x2220b;
inline constexpr uint32_t kCsched2UpdateRunqLoad = 0x2220c;
inline constexpr uint32_t kCsched2LoadBalance = 0x22211;
inline constexpr uint32_t kCsched2PickedCpu = 0x22213;
inline constexpr uint32_t kCsched2RunqCandidate = 0x22214;
inline constexpr uint32_t kCsched2Schedule = 0x22215;
inline constexpr uint32_t kRtdsRunqPick = 0x22802;
inline constexpr uint32_t kRtdsBudgetBurn = 0x22803;
inline constexpr uint32_t kRtdsBudgetReplenish = 0x22804;
inline constexpr uint32_t kRtdsSchedule = 0x22806;
inline constexpr uint32_t kSnullMigrate = 0x22a04;
inline constexpr uint32_t kSnullSchedule = 0x22a05;

// TRC_SCHED_VERBOSE.
inline constexpr uint32_t kSchedDomRem = 0x28002;
inline constexpr uint32_t kSchedWake = 0x28004;
inline constexpr uint32_t kSchedBlock = 0x28006;
inline constexpr uint32_t kSchedShutdown = 0x28007;
inline constexpr uint32_t kSchedSwitch = 0x2800a;
inline constexpr uint32_t kSchedSwitchInfprev = 0x2800e;
inline constexpr uint32_t kSchedSwitchInfnext = 0x2800f;
inline constexpr uint32_t kSchedSwitchInfcont = 0x28011;

// TRC_DOM0_DOMOPS.
inline constexpr uint32_t kDom0DomAdd = 0x41001;
inline constexpr uint32_t kDom0DomRem = 0x41002;

// TRC_HVM_ENTRYEXIT.
inline constexpr uint32_t kVmentry = 0x81001;
inline constexpr uint32_t kHvmVmexit = 0x81002;  // VMX; before Xen 4.19 also SVM
inline constexpr uint32_t kVmexit64 = kHvmVmexit | k64Bit;
inline constexpr uint32_t kHvmSvmExit = 0x81003;
inline constexpr uint32_t kSvmExit64 = kHvmSvmExit | k64Bit;

// TRC_HVM_HANDLER.
inline constexpr uint32_t kHvmPfXen = 0x82001;
inline constexpr uint32_t kHvmInjVirq = 0x82004;
inline constexpr uint32_t kHvmCrRead = 0x82008;
inline constexpr uint32_t kHvmMsrRead = 0x8200c;
inline constexpr uint32_t kHvmMsrWrite = 0x8200d;
inline constexpr uint32_t kHvmCpuid = 0x8200e;
inline constexpr uint32_t kHvmIntr = 0x8200f;
inline constexpr uint32_t kHvmNmi = 0x82010;
inline constexpr uint32_t kHvmVmmcall = 0x82012;
inline constexpr uint32_t kHvmIoportRead = 0x82016;
inline constexpr uint32_t kHvmIoportWrite = 0x82216;
inline constexpr uint32_t kHvmIomemRead = 0x82017;
inline constexpr uint32_t kHvmIomemWrite = 0x82217;
inline constexpr uint32_t kHvmRdtsc = 0x8201a;
inline constexpr uint32_t kHvmIntrWindow = 0x82020;
inline constexpr uint32_t kHvmNpf = 0x82021;
inline constexpr uint32_t kHvmTrap = 0x82023;
inline constexpr uint32_t kHvmXcrRead = 0x82026;

// TRC_HVM_EMUL.
inline constexpr uint32_t kHvmEmulHpetStartTimer = 0x84001;
inline constexpr uint32_t kHvmEmulLapicStartTimer = 0x84004;
inline constexpr uint32_t kHvmEmulPicIntOutput = 0x8400b;

// TRC_MEM.
inline constexpr uint32_t kMemPageGrantMap = 0x10f001;
inline constexpr uint32_t kMemSetP2mEntry = 0x10f004;
inline constexpr uint32_t kMemDecreaseReservation = 0x10f005;
inline constexpr uint32_t kMemPodPopulate = 0x10f010;
inline constexpr uint32_t kMemPodZeroReclaim = 0x10f011;
inline constexpr uint32_t kMemPodSuperpageSplinter = 0x10f012;

// TRC_PV_ENTRY and TRC_PV_SUBCALL.
inline constexpr uint32_t kPvTrap = 0x201003;
inline constexpr uint32_t kPvPageFault = 0x201004;
inline constexpr uint32_t kPvEmulatePrivop = 0x201006;
inline constexpr uint32_t kPvMathStateRestore = 0x201008;
inline constexpr uint32_t kPvPtwrEmulation = 0x20100b;
inline constexpr uint32_t kPvPtwrEmulationPae = 0x20100c;
inline constexpr uint32_t kPvHypercallV2 = 0x20100d;
inline constexpr uint32_t kPvHypercallSubcall = 0x20200e;

// TRC_SHADOW. Without kThreeLevels and kFourLevels, the guest has two levels.
inline constexpr uint32_t kShadowFixup = 0x40f006;
inline constexpr uint32_t kShadowEmulate = 0x40f008;
inline constexpr uint32_t kShadowEmulateUnshadowUser = 0x40f009;

// TRC_HW.
inline constexpr uint32_t kPmIdleExit = 0x801003;
inline constexpr uint32_t kHwIrqBindVector = 0x802003;
inline constexpr uint32_t kHwIrqHandled = 0x802008;

// TRC_GUEST: an event that a guest's kernel defines, by its number below 4096.
constexpr uint32_t GuestEvent(uint32_t number) { return 0x800f000 | number; }

}  // namespace xenoscope::trace
