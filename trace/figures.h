// The figures that readers of a trace show, and the events that each is made from: the only place
// that says what a mask leaves out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event_mask.h"
#include "trace/events.h"

namespace xenoscope::trace {

// A figure, or several that need the same events.
enum class Figure : uint8_t {
  kRunstates,
  kExits,
  kExitContents,
  kInjectedInterrupts,
  kShadowPaging,
  kPvEvents,
  kPvSubcalls,
  kSchedulerNotes,
  kSchedulerEvents,
  kGuestEvents,
  kDeviceEmulation,
  kMemory,
  kPower,
  kIrqs,
  kLosses,
  kCount
};

struct FigureInfo {
  std::string_view name;  // as a list of figures in a note has it
  // Events of which a mask must include all: one of each subclass that the figure needs.
  std::span<const Event> needs;
  bool in_report = false;  // `report` uses it, not only the reports of the trace alone
};

const FigureInfo& Info(Figure figure);

// Returns whether a trace with this mask has all records that the figure needs.
[[nodiscard]] bool Has(EventMask mask, Figure figure);

// All figures, which `summary` shows; and those that `report` uses.
std::span<const Figure> AllFigures();
std::span<const Figure> ReportFigures();

// Returns the names of the figures of `wanted` that a trace with this mask has not.
[[nodiscard]] std::vector<std::string_view> MissingFigures(EventMask mask,
                                                           std::span<const Figure> wanted);
// Returns a sentence that names the figures of `wanted` that a trace with this mask has not, and
// the cheapest preset that has them beside those that the trace has; "" when it has all.
// `mask_text` is the mask as it was asked for.
[[nodiscard]] std::string MissingFiguresNote(EventMask mask, std::string_view mask_text,
                                             std::span<const Figure> wanted);

}  // namespace xenoscope::trace
