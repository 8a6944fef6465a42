#include "correlate/exit_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "correlate/linear_pagetable.h"
#include "trace/device_names.h"
#include "trace/events.h"
#include "trace/names.h"

namespace xenoscope::correlate {
namespace {

using trace::Event;
using trace::Record;

// How much a record says about its exit. Of several records the one with the highest rank counts,
// or the first of these.
enum Rank : uint8_t {
  kNothing,
  kAside,     // work that exits of many kinds do
  kHandler,   // the reason of the exit
  kOutcome,   // the result of the handler
  kUnshadow,  // a page that this result unshadowed
};

// Returns the register or address in the words from `i` on.
uint64_t Long(const Record& record, uint32_t i) {
  return trace::Is64(record.id) ? record.payload.Word64(i) : record.payload.Word(i);
}

// Returns the level of the page-table entry whose write was emulated, shifted to its place in the
// number; 0 if the address does not say it. Payload: gl1e, value written, va.
uint64_t EmulatedLevel(const Record& record) {
  const uint32_t levels = trace::ShadowLevels(record.id);
  const uint32_t at = levels == 2 ? 2 : 4;
  const Address va = levels >= 4 ? record.payload.Word64(at) : record.payload.Word(at);
  const auto entry = FindLinearEntry(levels, va);
  return entry ? uint64_t{entry->level} << kLevelShift : 0;
}

uint64_t NpfNumber(const Record& record) {
  constexpr uint64_t kApic = 0xfee00;  // page of the local APIC
  const uint64_t type = record.payload.Word(5) & 0xffff;
  return record.payload.Word64(0) >> 12 == kApic ? type | kApicPage : type;
}

// Returns the address; of the frame buffer of VGA, which is no register, its beginning.
uint64_t MmioNumber(uint64_t address) {
  constexpr uint64_t kVgaBegin = 0xa0000;
  constexpr uint64_t kVgaEnd = 0xc0000;
  return address >= kVgaBegin && address < kVgaEnd ? kVgaBegin : address;
}

// Returns the flags of a shadow record. They are in the last word, whose upper bits are another
// field.
uint64_t ShadowFlags(const Record& record) {
  constexpr uint64_t kFlags = (1U << 29) - 1;
  return (record.payload.Word(record.payload.count() - 1) & kFlags) << kShadowFlagsShift;
}

// What the number of an exit is read from.
enum class NumberField : uint8_t {
  kNone,
  kWord,    // the first word
  kLong,    // the register or address in the first words
  kVector,  // the first word, if there is one
  kNpf,
  kMmio,
  kShadowFlags,
  kShadowFlagsAndLevel,
};

uint64_t ReadNumber(const Record& record, NumberField field) {
  switch (field) {
    case NumberField::kNone:
      return 0;
    case NumberField::kWord:
      return record.payload.Word(0);
    case NumberField::kLong:
      return Long(record, 0);
    case NumberField::kVector:
      return record.payload.count() == 0 ? kNoVector : record.payload.Word(0);
    case NumberField::kNpf:
      return NpfNumber(record);
    case NumberField::kMmio:
      return MmioNumber(Long(record, 0));
    case NumberField::kShadowFlags:
      return ShadowFlags(record);
    case NumberField::kShadowFlagsAndLevel:
      return ShadowFlags(record) | EmulatedLevel(record);
  }
  return 0;
}

// What the records of an event say about their exit.
struct HandlerEvent {
  Event event = Event::kUnknown;
  ExitKind kind = ExitKind::kNoHandler;
  Rank rank = kNothing;
  NumberField number = NumberField::kNone;
  uint8_t number_base = 0;  // added to the number: the fault case or the shadow work
  uint8_t effects = 0;      // set in kByEvent
};

constexpr HandlerEvent Fault(Event event, FaultCase how, Rank rank,
                             NumberField number = NumberField::kNone) {
  return {.event = event,
          .kind = ExitKind::kPageFault,
          .rank = rank,
          .number = number,
          .number_base = static_cast<uint8_t>(how)};
}

constexpr HandlerEvent Shadow(Event event, ShadowWork work) {
  return {.event = event,
          .kind = ExitKind::kShadow,
          .rank = kAside,
          .number_base = static_cast<uint8_t>(work)};
}

constexpr HandlerEvent kHandlerEvents[] = {
    {Event::kHvmCpuid, ExitKind::kCpuid, kHandler, NumberField::kWord},
    {Event::kHvmMsrRead, ExitKind::kMsrRead, kHandler, NumberField::kWord},
    {Event::kHvmMsrWrite, ExitKind::kMsrWrite, kHandler, NumberField::kWord},
    {Event::kHvmCrRead, ExitKind::kCrRead, kHandler, NumberField::kWord},
    {Event::kHvmCrWrite, ExitKind::kCrWrite, kHandler, NumberField::kWord},
    {Event::kHvmDrRead, ExitKind::kDrRead, kHandler},
    {Event::kHvmDrWrite, ExitKind::kDrWrite, kHandler},
    {Event::kHvmXcrRead, ExitKind::kXcrRead, kHandler, NumberField::kWord},
    {Event::kHvmXcrWrite, ExitKind::kXcrWrite, kHandler, NumberField::kWord},
    {Event::kHvmClts, ExitKind::kClts, kHandler},
    {Event::kHvmLmsw, ExitKind::kLmsw, kHandler},
    {Event::kHvmIntr, ExitKind::kInterrupt, kHandler, NumberField::kVector},
    {Event::kHvmNmi, ExitKind::kNmi, kHandler},
    {Event::kHvmSmi, ExitKind::kSmi, kHandler},
    {Event::kHvmMce, ExitKind::kMce, kHandler},
    {Event::kHvmTrap, ExitKind::kTrap, kHandler, NumberField::kWord},
    {Event::kHvmTrapDebug, ExitKind::kTrapDebug, kHandler},
    {Event::kHvmVmmcall, ExitKind::kHypercall, kHandler, NumberField::kWord},
    {Event::kHvmHlt, ExitKind::kHlt, kHandler},
    {Event::kHvmInvlpg, ExitKind::kInvlpg, kHandler},
    {Event::kHvmRdtsc, ExitKind::kRdtsc, kHandler},
    {Event::kHvmIoRead, ExitKind::kPortRead, kHandler, NumberField::kWord},
    {Event::kHvmIoWrite, ExitKind::kPortWrite, kHandler, NumberField::kWord},
    {Event::kHvmIoportRead, ExitKind::kPortRead, kHandler, NumberField::kLong},
    {Event::kHvmIoportWrite, ExitKind::kPortWrite, kHandler, NumberField::kLong},
    // These say more than the page fault that led to them, and come after it.
    {Event::kHvmIomemRead, ExitKind::kMmioRead, kOutcome, NumberField::kMmio},
    {Event::kHvmIomemWrite, ExitKind::kMmioWrite, kOutcome, NumberField::kMmio},
    {Event::kHvmNpf, ExitKind::kNpf, kHandler, NumberField::kNpf},
    {Event::kHvmVlapic, ExitKind::kVlapic, kAside},
    {Event::kHvmRealmodeEmulate, ExitKind::kRealmode, kAside},
    Fault(Event::kHvmPfXen, FaultCase::kUnknown, kHandler),
    Fault(Event::kHvmPfInject, FaultCase::kInjected, kAside),
    Fault(Event::kShadowNotShadow, FaultCase::kPropagate, kOutcome, NumberField::kShadowFlags),
    Fault(Event::kShadowFastPropagate, FaultCase::kFastPropagate, kOutcome),
    Fault(Event::kShadowFastMmio, FaultCase::kFastMmio, kOutcome),
    Fault(Event::kShadowMmio, FaultCase::kMmio, kOutcome),
    Fault(Event::kShadowFalseFastPath, FaultCase::kFalseFastPath, kOutcome),
    Fault(Event::kShadowFixup, FaultCase::kFixup, kOutcome, NumberField::kShadowFlags),
    Fault(Event::kShadowDomfDying, FaultCase::kDomainDying, kOutcome),
    Fault(Event::kShadowEmulate, FaultCase::kEmulate, kOutcome, NumberField::kShadowFlagsAndLevel),
    Fault(Event::kShadowEmulateUnshadowUser, FaultCase::kUnshadowUser, kUnshadow),
    Fault(Event::kShadowEmulateUnshadowEvtinj, FaultCase::kUnshadowEventInjection, kUnshadow),
    Fault(Event::kShadowEmulateUnshadowUnhandled, FaultCase::kUnshadowUnhandled, kUnshadow),
    Shadow(Event::kShadowWrmapBf, ShadowWork::kWrmapBruteForce),
    Shadow(Event::kShadowPreallocUnpin, ShadowWork::kPreallocUnpin),
    Shadow(Event::kShadowResyncFull, ShadowWork::kResyncFull),
    Shadow(Event::kShadowResyncOnly, ShadowWork::kResyncOnly),
};

// What ExitContents has of an event beside its kind and number: bits of HandlerEvent::effects.
enum Effect : uint8_t {
  kAccess = 1,     // an access to a device
  kEmulation = 2,  // Xen executes the instruction for the guest
  kResync = 4,     // of shadow page tables
};

constexpr uint8_t EffectsOf(const HandlerEvent& event) {
  switch (event.kind) {
    case ExitKind::kPortRead:
    case ExitKind::kPortWrite:
      return kAccess;
    case ExitKind::kMmioRead:
    case ExitKind::kMmioWrite:
      return kAccess | kEmulation;
    case ExitKind::kRealmode:
      return kEmulation;
    case ExitKind::kPageFault: {
      const auto how = static_cast<FaultCase>(event.number_base);
      const bool emulates =
          how == FaultCase::kEmulate || how == FaultCase::kMmio || how == FaultCase::kFastMmio;
      return emulates ? kEmulation : 0;
    }
    case ExitKind::kShadow: {
      const auto work = static_cast<ShadowWork>(event.number_base);
      return work == ShadowWork::kResyncFull || work == ShadowWork::kResyncOnly ? kResync : 0;
    }
    default:
      return 0;
  }
}

constexpr std::array<HandlerEvent, trace::kEventCount> IndexByEvent() {
  std::array<HandlerEvent, trace::kEventCount> table{};
  for (const HandlerEvent& row : kHandlerEvents) {
    HandlerEvent& entry = table[static_cast<size_t>(row.event)];
    entry = row;
    entry.effects = EffectsOf(row);
  }
  return table;
}

constexpr std::array<HandlerEvent, trace::kEventCount> kByEvent = IndexByEvent();

constexpr std::string_view kFaultCases[] = {
    "(no case recorded)", "injected", "propagate",       "fast propagate",
    "fast mmio",          "mmio",     "false fast path", "fixup",
    "domain dying",       "emulate",  "unshadow: user",  "unshadow: event",
    "unshadow: unhandled"};

constexpr std::string_view kShadowWorks[] = {"wrmap brute force", "prealloc unpin", "resync full",
                                             "resync only"};

template <size_t N>
std::string At(const std::string_view (&names)[N], uint64_t number, std::string_view otherwise) {
  return number < N ? std::string(names[number]) : fmt::format("{} {}", otherwise, number);
}

std::string HexAndName(uint64_t number, std::string_view name) {
  return name.empty() ? fmt::format("0x{:x}", number) : fmt::format("0x{:x} ({})", number, name);
}

std::string NameOrHex(std::string_view name, uint64_t number) {
  return name.empty() ? fmt::format("0x{:x}", number) : std::string(name);
}

}  // namespace

std::span<const Event> HandlerEvents() {
  static constexpr auto kEvents = [] {
    std::array<Event, std::size(kHandlerEvents)> events{};
    std::ranges::transform(kHandlerEvents, events.begin(), &HandlerEvent::event);
    return events;
  }();
  return kEvents;
}

void ExitContents::Take(const Record& record) {
  const HandlerEvent& event = kByEvent[static_cast<size_t>(record.event)];
  const uint64_t event_number = event.number_base | ReadNumber(record, event.number);
  if (event.effects != 0) [[unlikely]] {
    if ((event.effects & kAccess) != 0) {
      if (accesses < kMaxAccesses) access[accesses] = {event.kind, Long(record, 0)};
      ++accesses;
    }
    emulated |= (event.effects & kEmulation) != 0;
    if ((event.effects & kResync) != 0) {
      resync = true;
      if (kind == ExitKind::kCrWrite) number |= kResynced;
    }
  }
  if (event.rank <= rank) return;
  kind = event.kind;
  rank = event.rank;
  number = event_number;
}

void ExitContents::Append(const ExitContents& later) {
  const uint32_t kept = std::min(later.accesses, kMaxAccesses);
  for (uint32_t i = 0; i < kept; ++i) {
    if (accesses + i < kMaxAccesses) access[accesses + i] = later.access[i];
  }
  accesses += later.accesses;
  emulated |= later.emulated;
  if (kind == ExitKind::kCrWrite && later.resync) number |= kResynced;
  resync |= later.resync;
  if (later.rank > rank) {
    kind = later.kind;
    rank = later.rank;
    number = later.number;
  }
}

const char* ToString(ExitKind kind) {
  constexpr const char* kNames[] = {
      "(no handler)", "cpuid",    "msr_read",  "msr_write",  "cr_read",    "cr_write", "dr_read",
      "dr_write",     "xcr_read", "xcr_write", "clts",       "lmsw",       "intr",     "nmi",
      "smi",          "mce",      "trap",      "trap_debug", "hypercall",  "hlt",      "invlpg",
      "rdtsc",        "io_read",  "io_write",  "mmio_read",  "mmio_write", "npf",      "page_fault",
      "shadow",       "vlapic",   "realmode",  "(others)"};
  static_assert(std::size(kNames) == static_cast<size_t>(ExitKind::kOthers) + 1);
  return kNames[static_cast<size_t>(kind)];
}

std::string NumberName(ExitKind kind, uint64_t number) {
  switch (kind) {
    case ExitKind::kCpuid:
      return fmt::format("leaf 0x{:x}", number);
    case ExitKind::kMsrRead:
    case ExitKind::kMsrWrite:
      return NameOrHex(trace::MsrName(static_cast<uint32_t>(number)), number);
    case ExitKind::kCrRead:
      return fmt::format("cr{}", number);
    case ExitKind::kCrWrite:
      return fmt::format("cr{}{}", number & ~kResynced,
                         (number & kResynced) != 0 ? ", resync" : "");
    case ExitKind::kXcrRead:
    case ExitKind::kXcrWrite:
      return fmt::format("xcr{}", number);
    case ExitKind::kInterrupt:
      return number == kNoVector ? "(vector not recorded)" : fmt::format("vector 0x{:x}", number);
    case ExitKind::kTrap:
      return NameOrHex(trace::TrapName(static_cast<uint32_t>(number)), number);
    case ExitKind::kHypercall:
      return NameOrHex(trace::HypercallName(static_cast<uint32_t>(number)), number);
    case ExitKind::kPortRead:
    case ExitKind::kPortWrite:
      return HexAndName(number, trace::PortName(number));
    case ExitKind::kMmioRead:
    case ExitKind::kMmioWrite:
      return HexAndName(number, trace::MmioName(number));
    case ExitKind::kNpf: {
      const auto type = static_cast<uint32_t>(number & ~kApicPage);
      const std::string_view name = trace::P2mTypeName(type);
      return (name.empty() ? fmt::format("p2m type {}", type) : std::string(name)) +
             ((number & kApicPage) != 0 ? ", apic" : "");
    }
    case ExitKind::kPageFault: {
      const uint64_t level = number >> kLevelShift & 0xff;
      return At(kFaultCases, number & 0xff, "case") +
             (level > 0 ? fmt::format(", level {} entry", level) : "");
    }
    case ExitKind::kShadow:
      return At(kShadowWorks, number, "work");
    default:
      return "";
  }
}

}  // namespace xenoscope::correlate
