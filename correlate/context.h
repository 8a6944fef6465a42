// What a processor was doing for a vCPU at some instant, as the trace says it. A domain, a vCPU and
// a context make a stratum.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "correlate/exit_contents.h"
#include "correlate/timeline.h"

namespace xenoscope::correlate {

enum class ContextKind : uint8_t {
  kRunning,  // a PV guest's vCPU ran, in the guest or in Xen: the trace does not say which
  kGuest,    // HVM: between VMENTRY and VMEXIT
  kExit,     // HVM: between VMEXIT and VMENTRY, for `reason`
  kResume,   // HVM: scheduled in, before VMENTRY; the exit was not seen
  // HVM: in Xen between VMENTRY and VMEXIT: after the one record until the guest runs, or from
  // where it stopped until the other record.
  kTransition,
  kLost,      // while records of the trace were lost
  kUntraced,  // there is no trace
  // In Xen, which switches the pCPU to this vCPU from another one (context_switches.h).
  kSwitch,
  // The same, from a domain that has no samples in Xen: samples of switches are logged for the vCPU
  // that stops, so that there are none.
  kUnsampledSwitch,
};
inline constexpr size_t kContextKinds = 9;

struct Context {
  ContextKind kind = ContextKind::kUntraced;
  bool nested = false;  // kGuest, kTransition, kExit: of a nested guest
  uint32_t reason = 0;  // kExit: the vendor's exit reason
  // kExit: what the handler recorded, if PlacingOptions::by_subreason.
  ExitKind exit_kind = ExitKind::kNoHandler;
  // The vCPUs that waited for the pCPU, if PlacingOptions::by_waiting: an index into
  // Placer::waiting_sets.
  uint32_t waiting = 0;
  uint64_t number = 0;  // port, MSR, leaf, ...: ExitContents::number
  // What woke the vCPU, if PlacingOptions::by_wakeup: Wakeup::now.
  uint32_t wakeup = 0;
  // The thread that the vCPU's kernel had put on it, if PlacingOptions::threads:
  // ThreadSource::IdentityOf; 0: not known.
  uint32_t thread = 0;

  constexpr auto operator<=>(const Context&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Context& context) {
    return H::combine(std::move(h), context.kind, context.nested, context.reason, context.exit_kind,
                      context.waiting, context.wakeup, context.thread, context.number);
  }
};

[[nodiscard]] constexpr Context ContextOf(SegmentKind kind, bool nested, uint32_t reason) {
  switch (kind) {
    case SegmentKind::kGuest:
      return {ContextKind::kGuest, nested};
    case SegmentKind::kExit:
      return {ContextKind::kExit, nested, reason};
    case SegmentKind::kResume:
      return {ContextKind::kResume};
    case SegmentKind::kUndivided:
      break;
  }
  return {ContextKind::kRunning};
}

// Returns a number in which all of the context has a part, for tables whose places MultiplyHash
// chooses of such numbers. It takes a few instructions.
[[nodiscard]] constexpr uint64_t Mixed(const Context& context) {
  return context.number + (uint64_t{context.reason} << 8U) + (uint64_t{context.waiting} << 16U) +
         (uint64_t{context.wakeup} << 24U) + (uint64_t{context.thread} << 32U) +
         (uint64_t{context.nested} << 47U) + (static_cast<uint64_t>(context.kind) << 48U) +
         (static_cast<uint64_t>(context.exit_kind) << 56U);
}

// Whether the trace measures the cycles that are spent in such contexts: exactly, but for the
// border between kGuest and kTransition (docs/method.md, section 4.3).
[[nodiscard]] constexpr bool IsTraced(ContextKind kind) {
  return kind != ContextKind::kLost && kind != ContextKind::kUntraced;
}

// Returns the context without what the exit's handler recorded.
[[nodiscard]] constexpr Context WithoutSubreason(Context context) {
  context.exit_kind = ExitKind::kNoHandler;
  context.number = 0;
  return context;
}

// Whether the stratum of a vCPU in such a context is one of those that StratumUnions treats
// together: all that is traced, but for switches, which have samples of other vCPUs.
[[nodiscard]] constexpr bool MayBeUnited(ContextKind kind) {
  return IsTraced(kind) && kind != ContextKind::kSwitch && kind != ContextKind::kUnsampledSwitch;
}

// Returns the context of the entries to a guest and exits from it that the guest's context holds.
[[nodiscard]] constexpr Context TransitionOf(Context guest) {
  guest.kind = ContextKind::kTransition;
  return guest;
}

}  // namespace xenoscope::correlate
