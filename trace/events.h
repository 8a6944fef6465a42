// The events that Xen records, what is known of each, and the parts of the event number that
// analyses need. The table is trace/event_rows.inc; decoded fields are in trace/fields.h.
//
// Event number (xen/include/public/trace.h, 4.8 to 4.22): bits 16..27 class, one bit each; bits
// 12..15 subclass; bits 0..11 the event with its variant bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace xenoscope::trace {

// Named after Xen's TRC_ constants.
enum class Event : uint16_t {
  kUnknown = 0,
#define XENOSCOPE_EVENT(enumerator, name, id, variants, tsc, layout) enumerator,
#include "trace/event_rows.inc"
#undef XENOSCOPE_EVENT
  kCount
};

inline constexpr size_t kEventCount = static_cast<size_t>(Event::kCount);

// The classes of events, in the order of their bits; every number has one, or is kUnknown.
enum class TraceClass : uint8_t {
  kUnknown,
  kGen,
  kSched,
  kDom0Op,
  kHvm,
  kMem,
  kPv,
  kShadow,
  kHw,
  kGuest,
  kCount
};

// The kinds that reports of volume tell apart: the classes, or their subclasses if they have any.
enum class TraceSubclass : uint8_t {
  kUnknown,
  kGen,
  kSchedMin,
  kSchedClass,
  kSchedVerbose,
  kDom0DomOps,
  kHvmEntryExit,
  kHvmHandler,
  kHvmEmul,
  kMem,
  kPvEntry,
  kPvSubcall,
  kShadow,
  kHwPm,
  kHwIrq,
  kGuest,
  kCount
};

// "gen", "sched", "dom0op", "hvm", "mem", "pv", "shadow", "hw", "guest", "unknown".
[[nodiscard]] std::string_view ToString(TraceClass trace_class);
// "sched_min", "sched_class", "hvm_entryexit", ...; the name of the class if it has no subclasses.
[[nodiscard]] std::string_view ToString(TraceSubclass subclass);

// Returns the class of any event number, also of an unknown event; kUnknown when Xen has no such
// class.
[[nodiscard]] TraceClass ClassOf(uint32_t id);
[[nodiscard]] TraceSubclass SubclassOf(uint32_t id);

struct EventInfo {
  std::string_view name;  // as dump prints it; unique
  uint32_t id = 0;        // the number without variant bits
  uint32_t variants = 0;  // the variant bits that the number may have
  TraceClass trace_class = TraceClass::kUnknown;
  TraceSubclass subclass = TraceSubclass::kUnknown;
  uint8_t min_words = 0;  // over all versions and variants
  uint8_t max_words = 7;
  bool has_tsc = false;  // Xen gives the record a time of its own
};

namespace events_internal {
inline constexpr std::array<uint32_t, kEventCount> kIds = {
    0,
#define XENOSCOPE_EVENT(enumerator, name, id, variants, tsc, layout) id,
#include "trace/event_rows.inc"
#undef XENOSCOPE_EVENT
};
// By class (the number of its bit, 0 to 7) and the low 16 bits of the number.
inline constexpr size_t kNumbersInClass = size_t{1} << 16;
extern const std::array<uint8_t, 8 * kNumbersInClass> kEventByNumber;
extern const std::array<EventInfo, kEventCount> kEventInfo;
}  // namespace events_internal

// Returns the event's number without variant bits; 0 for kUnknown.
[[nodiscard]] constexpr uint32_t IdOf(Event event) noexcept {
  return events_internal::kIds[static_cast<size_t>(event)];
}

// Returns the event of the 28-bit number, or kUnknown. One table load, as every record of a trace
// needs it.
[[nodiscard]] inline Event Classify(uint32_t id) noexcept {
  const uint32_t trace_class = id >> 16;
  // Not std::has_single_bit: without the popcnt instruction that is a call.
  if (trace_class - 1 < 0xff && (trace_class & (trace_class - 1)) == 0) [[likely]] {
    const auto bit = static_cast<size_t>(std::countr_zero(trace_class));
    return static_cast<Event>(
        events_internal::kEventByNumber[bit * events_internal::kNumbersInClass + (id & 0xffff)]);
  }
  return id >> 12 == 0x800f ? Event::kGuest : Event::kUnknown;
}

inline const EventInfo& Info(Event event) noexcept {
  return events_internal::kEventInfo[static_cast<size_t>(event)];
}

// Returns the event of this name (EventInfo::name), or kUnknown.
[[nodiscard]] Event EventByName(std::string_view name);

// A vCPU's runstate; the numbers are Xen's (xen/include/public/vcpu.h).
enum class Runstate : uint8_t { kRunning = 0, kRunnable = 1, kBlocked = 2, kOffline = 3 };

// "running", "runnable", "blocked", "offline".
[[nodiscard]] std::string_view ToString(Runstate state);

// The runstates before and after a kRunstateChange.
[[nodiscard]] constexpr Runstate RunstateOld(uint32_t id) {
  return static_cast<Runstate>(id >> 8 & 3);
}
[[nodiscard]] constexpr Runstate RunstateNew(uint32_t id) {
  return static_cast<Runstate>(id >> 4 & 3);
}

// Whether PV and HVM events have addresses of 64 bits (TRC_64_FLAG). Not for kPvHypercallV2, nor
// for shadow events.
[[nodiscard]] constexpr bool Is64(uint32_t id) { return (id & 0x100) != 0; }
// Whether a VM entry or exit is of the guest's own guest (TRC_HVM_NESTEDFLAG, SVM only).
[[nodiscard]] constexpr bool IsNested(uint32_t id) { return (id & 0x400) != 0; }
// Returns the guest's paging levels in shadow events: 2 to 5, of which Xen writes 2 to 4.
[[nodiscard]] constexpr uint32_t ShadowLevels(uint32_t id) { return (id >> 8 & 3) + 2; }

// The vCPU packed in one word as most records have it: vCPU (scheduling unit since 4.13) in the
// low half, domain in the high one. kLostRecords has them the other way: UnpackDomainFirst.
[[nodiscard]] constexpr VcpuRef UnpackVcpu(uint32_t word) {
  return {DomainId{static_cast<uint16_t>(word >> 16)}, VcpuId{word & 0xffff}};
}
[[nodiscard]] constexpr VcpuRef UnpackDomainFirst(uint32_t word) {
  return {DomainId{static_cast<uint16_t>(word & 0xffff)}, VcpuId{word >> 16}};
}

// Whether the event changes the state of vCPUs that may be those of other pCPUs: a record of it
// crosses pCPUs. Between two of them, everything in a pCPU's trace is about the vCPU that runs
// there, or changes no vCPU's state.
[[nodiscard]] constexpr bool Crosses(Event event) {
  return event == Event::kRunstateChange || event == Event::kContinueRunning ||
         event == Event::kSchedDomRem || event == Event::kDom0DomRem;
}

// Returns the hypercall's number in word 0 of a kPvHypercallV2 or kPvHypercallSubcall.
[[nodiscard]] constexpr uint32_t HypercallOp(uint32_t word) { return word & 0xfffff; }

}  // namespace xenoscope::trace
