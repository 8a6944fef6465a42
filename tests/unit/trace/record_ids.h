// The event numbers of the records that tests write, as Xen writes them
// (xen/include/public/trace.h). They are numbers, so that tests also check trace/event_rows.inc.
#pragma once

#include <cstdint>

namespace xenoscope::trace {

inline constexpr uint32_t kLostRecords = 0x1f001;

// TRC_SCHED_RUNSTATE_CHANGE, by the states before and after.
inline constexpr uint32_t kRunnableToRunning = 0x21101;
inline constexpr uint32_t kRunnableToBlocked = 0x21121;
inline constexpr uint32_t kRunningToRunnable = 0x21011;
inline constexpr uint32_t kRunningToBlocked = 0x21021;
inline constexpr uint32_t kRunningToOffline = 0x21031;
inline constexpr uint32_t kBlockedToRunnable = 0x21211;
inline constexpr uint32_t kOfflineToRunnable = 0x21311;
inline constexpr uint32_t kContinueRunning = 0x21002;

inline constexpr uint32_t kVmentry = 0x81001;
inline constexpr uint32_t kVmexit64 = 0x81102;   // VMX, with TRC_64_FLAG
inline constexpr uint32_t kSvmExit64 = 0x81103;  // with TRC_64_FLAG
inline constexpr uint32_t kHvmInjVirq = 0x82004;
inline constexpr uint32_t kHvmCpuid = 0x8200e;
inline constexpr uint32_t kHvmNmi = 0x82010;
inline constexpr uint32_t kHvmIoportRead = 0x82016;
inline constexpr uint32_t kHvmTrap = 0x82023;

inline constexpr uint32_t kPvHypercallV2 = 0x20100d;

}  // namespace xenoscope::trace
