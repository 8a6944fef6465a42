// The mask by which Xen chooses the events that it records, and the names of masks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/events.h"

namespace xenoscope::trace {

// Xen's tb_event_mask: bits 16 to 27 choose classes, bits 12 to 15 choose subclasses, which are the
// same ones in all classes. Xen cannot choose single events.
struct EventMask {
  uint32_t value = 0;

  static constexpr uint32_t kClassBits = 0x0fff0000;
  static constexpr uint32_t kSubclassBits = 0x0000f000;

  // Returns whether Xen records the event: the mask has its class and a bit of its subclass
  // (xen/common/trace.c, trace_will_trace_event, 4.8 to 4.22).
  [[nodiscard]] constexpr bool Includes(Event event) const {
    const uint32_t common = value & IdOf(event);
    return (common & kClassBits) != 0 && (common & kSubclassBits) != 0;
  }
  // Returns whether no event at all is recorded.
  [[nodiscard]] constexpr bool IsEmpty() const {
    return (value & kClassBits) == 0 || (value & kSubclassBits) == 0;
  }
  constexpr bool operator==(const EventMask&) const = default;
};

// A mask with a name.
struct NamedMask {
  std::string_view name;
  EventMask mask;
  std::string_view about;
};

// The presets of `record --trace-events`, the cheapest ones first. A mask of handlers' records and
// runstates always has the schedulers' own events too, because subclasses are those of all classes.
inline constexpr std::array kMaskPresets = {
    NamedMask{"sched", {0x0002f000}, "runstates and all events of the scheduler"},
    NamedMask{"exits",
              {0x080f1000},
              "runstates, VM exits and entries, guests' own events; not what exits were about"},
    NamedMask{"profile",
              {0x084f3000},
              "what report needs: as exits, with what the exits were about; not PV hypercalls and "
              "traps, which `profile,pv` adds"},
    NamedMask{"all", {0x0ffff000}, "everything"},
};

// What is recorded unless another mask is asked for.
inline constexpr std::string_view kDefaultMaskName = "profile";
inline constexpr EventMask kDefaultMask = [] {
  EventMask mask;
  for (const NamedMask& preset : kMaskPresets) {
    if (preset.name == kDefaultMaskName) mask = preset.mask;
  }
  return mask;
}();

// Returns the mask of a name (of kMaskPresets; a class of trace.h: gen, sched, dom0op, hvm, mem,
// pv, shadow, hw, guest), of a number as xentrace -e takes it ("0x0008f000"), or of several of
// these with commas between them, which are combined bit by bit. Nothing if it is none of these.
[[nodiscard]] std::optional<EventMask> ParseEventMask(std::string_view text);

}  // namespace xenoscope::trace
