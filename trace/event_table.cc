// The tables behind trace/events.h, made at compile time from trace/event_rows.inc.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "trace/events.h"
#include "trace/layout.h"

namespace xenoscope::trace {
namespace {

constexpr bool kTsc = true;
constexpr bool kNoTsc = false;

struct SubclassRow {
  TraceSubclass subclass;
  TraceClass trace_class;
  uint32_t id_high;  // bits 12 and up of the numbers
  std::string_view name;
};

constexpr SubclassRow kSubclasses[] = {
    {TraceSubclass::kUnknown, TraceClass::kUnknown, 0, "unknown"},
    {TraceSubclass::kGen, TraceClass::kGen, 0x1f, "gen"},
    {TraceSubclass::kSchedMin, TraceClass::kSched, 0x21, "sched_min"},
    {TraceSubclass::kSchedClass, TraceClass::kSched, 0x22, "sched_class"},
    {TraceSubclass::kSchedVerbose, TraceClass::kSched, 0x28, "sched_verbose"},
    {TraceSubclass::kDom0DomOps, TraceClass::kDom0Op, 0x41, "dom0_domops"},
    {TraceSubclass::kHvmEntryExit, TraceClass::kHvm, 0x81, "hvm_entryexit"},
    {TraceSubclass::kHvmHandler, TraceClass::kHvm, 0x82, "hvm_handler"},
    {TraceSubclass::kHvmEmul, TraceClass::kHvm, 0x84, "hvm_emul"},
    {TraceSubclass::kMem, TraceClass::kMem, 0x10f, "mem"},
    {TraceSubclass::kPvEntry, TraceClass::kPv, 0x201, "pv_entry"},
    {TraceSubclass::kPvSubcall, TraceClass::kPv, 0x202, "pv_subcall"},
    {TraceSubclass::kShadow, TraceClass::kShadow, 0x40f, "shadow"},
    {TraceSubclass::kHwPm, TraceClass::kHw, 0x801, "hw_pm"},
    {TraceSubclass::kHwIrq, TraceClass::kHw, 0x802, "hw_irq"},
    {TraceSubclass::kGuest, TraceClass::kGuest, 0x800f, "guest"},
};
static_assert(std::size(kSubclasses) == static_cast<size_t>(TraceSubclass::kCount));

constexpr const SubclassRow& FindSubclass(uint32_t id) {
  for (const SubclassRow& row : kSubclasses) {
    if (row.id_high == id >> 12) return row;
  }
  return kSubclasses[0];
}

constexpr EventInfo MakeInfo(std::string_view name, uint32_t id, uint32_t variants, bool has_tsc,
                             const Layout& layout) {
  const SubclassRow& subclass = FindSubclass(id);
  return {.name = name,
          .id = id,
          .variants = variants,
          .trace_class = subclass.trace_class,
          .subclass = subclass.subclass,
          .min_words = layout.min_words,
          .max_words = layout.max_words,
          .has_tsc = has_tsc};
}

constexpr std::array<Layout, kEventCount> kLayouts = {
    ParseLayout("words:*"),
#define XENOSCOPE_EVENT(enumerator, name, id, variants, tsc, layout) ParseLayout(layout),
#include "trace/event_rows.inc"
#undef XENOSCOPE_EVENT
};

constexpr std::array<EventInfo, kEventCount> kInfo = {
    EventInfo{.name = "unknown"},
#define XENOSCOPE_EVENT(enumerator, name, id, variants, tsc, layout) \
  MakeInfo(name, id, variants, tsc, kLayouts[static_cast<size_t>(Event::enumerator)]),
#include "trace/event_rows.inc"
#undef XENOSCOPE_EVENT
};
static_assert(kEventCount <= 256, "an event fits a byte of the table");

using NumberTable = std::array<uint8_t, 8 * events_internal::kNumbersInClass>;

// Two rows that claim the same number do not compile.
constexpr NumberTable MakeNumbers() {
  NumberTable table{};
  for (size_t event = 1; event < kEventCount; ++event) {
    const EventInfo& info = kInfo[event];
    if (info.trace_class == TraceClass::kGuest) continue;  // Classify knows it without the table
    const auto bit = static_cast<size_t>(std::countr_zero(info.id >> 16));
    uint32_t variant = info.variants;
    while (true) {  // every subset of the variant bits, the empty one last
      uint8_t& slot =
          table[bit * events_internal::kNumbersInClass + ((info.id | variant) & 0xffff)];
      if (slot != 0) throw "one number, two events";
      slot = static_cast<uint8_t>(event);
      if (variant == 0) break;
      variant = (variant - 1) & info.variants;
    }
  }
  return table;
}

}  // namespace

namespace events_internal {
constinit const NumberTable kEventByNumber = MakeNumbers();
constinit const std::array<EventInfo, kEventCount> kEventInfo = kInfo;
}  // namespace events_internal

std::string_view ToString(TraceClass trace_class) {
  constexpr std::string_view kNames[] = {"unknown", "gen", "sched",  "dom0op", "hvm",
                                         "mem",     "pv",  "shadow", "hw",     "guest"};
  static_assert(std::size(kNames) == static_cast<size_t>(TraceClass::kCount));
  return kNames[static_cast<size_t>(trace_class)];
}

std::string_view ToString(TraceSubclass subclass) {
  return kSubclasses[static_cast<size_t>(subclass)].name;
}

TraceClass ClassOf(uint32_t id) {
  switch (id >> 16) {
    case 0x1:
      return TraceClass::kGen;
    case 0x2:
      return TraceClass::kSched;
    case 0x4:
      return TraceClass::kDom0Op;
    case 0x8:
      return TraceClass::kHvm;
    case 0x10:
      return TraceClass::kMem;
    case 0x20:
      return TraceClass::kPv;
    case 0x40:
      return TraceClass::kShadow;
    case 0x80:
      return TraceClass::kHw;
    case 0x800:
      return TraceClass::kGuest;
    default:
      return TraceClass::kUnknown;
  }
}

TraceSubclass SubclassOf(uint32_t id) { return FindSubclass(id).subclass; }

const Layout& LayoutOf(Event event) noexcept { return kLayouts[static_cast<size_t>(event)]; }

Event EventByName(std::string_view name) {
  for (size_t event = 1; event < kEventCount; ++event) {
    if (kInfo[event].name == name) return static_cast<Event>(event);
  }
  return Event::kUnknown;
}

std::string_view ToString(Runstate state) {
  constexpr std::string_view kNames[] = {"running", "runnable", "blocked", "offline"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace xenoscope::trace
