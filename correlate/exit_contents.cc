#include "correlate/exit_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "correlate/linear_pagetable.h"
#include "trace/events.h"
#include "trace/names.h"

namespace xenoscope::correlate {
namespace {

using trace::Event;
using trace::Record;

// How much a record says of its exit. The highest rank of several records wins, and the first of
// equals.
enum Rank : uint8_t {
  kNothing,
  kAside,     // happens in exits of many kinds
  kHandler,   // what the exit was for
  kOutcome,   // how the handler dealt with it
  kUnshadow,  // ... and what that led to
};

struct HandlerRecord {
  ExitKind kind = ExitKind::kNoHandler;
  Rank rank = kNothing;
  uint64_t number = 0;
};

HandlerRecord Fault(FaultCase how, Rank rank) {
  return {ExitKind::kPageFault, rank, static_cast<uint64_t>(how)};
}

// Sets the flags from the last word, whose upper bits are another field.
HandlerRecord FaultWithFlags(FaultCase how, Rank rank, const Record& record) {
  constexpr uint64_t kFlags = (1U << 29) - 1;
  HandlerRecord classified = Fault(how, rank);
  classified.number |= (record.payload.Word(record.payload.count() - 1) & kFlags)
                       << kShadowFlagsShift;
  return classified;
}

HandlerRecord Shadow(ShadowWork work) {
  return {ExitKind::kShadow, kAside, static_cast<uint64_t>(work)};
}

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

HandlerRecord ClassifyHandlerRecord(const Record& record) {
  const trace::Payload& payload = record.payload;
  switch (record.event) {
    case Event::kHvmCpuid:
      return {ExitKind::kCpuid, kHandler, payload.Word(0)};
    case Event::kHvmMsrRead:
      return {ExitKind::kMsrRead, kHandler, payload.Word(0)};
    case Event::kHvmMsrWrite:
      return {ExitKind::kMsrWrite, kHandler, payload.Word(0)};
    case Event::kHvmCrRead:
      return {ExitKind::kCrRead, kHandler, payload.Word(0)};
    case Event::kHvmCrWrite:
      return {ExitKind::kCrWrite, kHandler, payload.Word(0)};
    case Event::kHvmDrRead:
      return {ExitKind::kDrRead, kHandler, 0};
    case Event::kHvmDrWrite:
      return {ExitKind::kDrWrite, kHandler, 0};
    case Event::kHvmXcrRead:
      return {ExitKind::kXcrRead, kHandler, payload.Word(0)};
    case Event::kHvmXcrWrite:
      return {ExitKind::kXcrWrite, kHandler, payload.Word(0)};
    case Event::kHvmClts:
      return {ExitKind::kClts, kHandler, 0};
    case Event::kHvmLmsw:
      return {ExitKind::kLmsw, kHandler, 0};
    case Event::kHvmIntr:
      return {ExitKind::kInterrupt, kHandler, payload.count() == 0 ? kNoVector : payload.Word(0)};
    case Event::kHvmNmi:
      return {ExitKind::kNmi, kHandler, 0};
    case Event::kHvmSmi:
      return {ExitKind::kSmi, kHandler, 0};
    case Event::kHvmMce:
      return {ExitKind::kMce, kHandler, 0};
    case Event::kHvmTrap:
      return {ExitKind::kTrap, kHandler, payload.Word(0)};
    case Event::kHvmTrapDebug:
      return {ExitKind::kTrapDebug, kHandler, 0};
    case Event::kHvmVmmcall:
      return {ExitKind::kHypercall, kHandler, payload.Word(0)};
    case Event::kHvmHlt:
      return {ExitKind::kHlt, kHandler, 0};
    case Event::kHvmInvlpg:
      return {ExitKind::kInvlpg, kHandler, 0};
    case Event::kHvmRdtsc:
      return {ExitKind::kRdtsc, kHandler, 0};
    case Event::kHvmIoRead:
      return {ExitKind::kPortRead, kHandler, payload.Word(0)};
    case Event::kHvmIoWrite:
      return {ExitKind::kPortWrite, kHandler, payload.Word(0)};
    case Event::kHvmIoportRead:
      return {ExitKind::kPortRead, kHandler, Long(record, 0)};
    case Event::kHvmIoportWrite:
      return {ExitKind::kPortWrite, kHandler, Long(record, 0)};
    case Event::kHvmIomemRead:
      return {ExitKind::kMmioRead, kAside, Long(record, 0)};
    case Event::kHvmIomemWrite:
      return {ExitKind::kMmioWrite, kAside, Long(record, 0)};
    case Event::kHvmNpf:
      return {ExitKind::kNpf, kHandler, NpfNumber(record)};
    case Event::kHvmVlapic:
      return {ExitKind::kVlapic, kAside, 0};
    case Event::kHvmRealmodeEmulate:
      return {ExitKind::kRealmode, kAside, 0};
    case Event::kHvmPfXen:
      return Fault(FaultCase::kUnknown, kHandler);
    case Event::kHvmPfInject:
      return Fault(FaultCase::kInjected, kAside);
    case Event::kShadowNotShadow:
      return FaultWithFlags(FaultCase::kPropagate, kOutcome, record);
    case Event::kShadowFastPropagate:
      return Fault(FaultCase::kFastPropagate, kOutcome);
    case Event::kShadowFastMmio:
      return Fault(FaultCase::kFastMmio, kOutcome);
    case Event::kShadowMmio:
      return Fault(FaultCase::kMmio, kOutcome);
    case Event::kShadowFalseFastPath:
      return Fault(FaultCase::kFalseFastPath, kOutcome);
    case Event::kShadowFixup:
      return FaultWithFlags(FaultCase::kFixup, kOutcome, record);
    case Event::kShadowDomfDying:
      return Fault(FaultCase::kDomainDying, kOutcome);
    case Event::kShadowEmulate: {
      HandlerRecord classified = FaultWithFlags(FaultCase::kEmulate, kOutcome, record);
      classified.number |= EmulatedLevel(record);
      return classified;
    }
    case Event::kShadowEmulateUnshadowUser:
      return Fault(FaultCase::kUnshadowUser, kUnshadow);
    case Event::kShadowEmulateUnshadowEvtinj:
      return Fault(FaultCase::kUnshadowEventInjection, kUnshadow);
    case Event::kShadowEmulateUnshadowUnhandled:
      return Fault(FaultCase::kUnshadowUnhandled, kUnshadow);
    case Event::kShadowWrmapBf:
      return Shadow(ShadowWork::kWrmapBruteForce);
    case Event::kShadowPreallocUnpin:
      return Shadow(ShadowWork::kPreallocUnpin);
    case Event::kShadowResyncFull:
      return Shadow(ShadowWork::kResyncFull);
    case Event::kShadowResyncOnly:
      return Shadow(ShadowWork::kResyncOnly);
    default:
      return {};
  }
}

bool IsResync(const HandlerRecord& classified) {
  return classified.kind == ExitKind::kShadow &&
         (classified.number == static_cast<uint64_t>(ShadowWork::kResyncFull) ||
          classified.number == static_cast<uint64_t>(ShadowWork::kResyncOnly));
}

// Whether Xen then executes the instruction for the guest.
bool IsEmulation(const HandlerRecord& classified) {
  switch (classified.kind) {
    case ExitKind::kMmioRead:
    case ExitKind::kMmioWrite:
    case ExitKind::kRealmode:
      return true;
    case ExitKind::kPageFault: {
      const auto how = static_cast<FaultCase>(classified.number & 0xff);
      return how == FaultCase::kEmulate || how == FaultCase::kMmio || how == FaultCase::kFastMmio;
    }
    default:
      return false;
  }
}

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

std::string NameOrHex(std::string_view name, uint64_t number) {
  return name.empty() ? fmt::format("0x{:x}", number) : std::string(name);
}

constexpr Event kHandlerEvents[] = {
    Event::kHvmPfXen,
    Event::kHvmPfInject,
    Event::kHvmIoRead,
    Event::kHvmIoWrite,
    Event::kHvmCrRead,
    Event::kHvmCrWrite,
    Event::kHvmDrRead,
    Event::kHvmDrWrite,
    Event::kHvmMsrRead,
    Event::kHvmMsrWrite,
    Event::kHvmCpuid,
    Event::kHvmIntr,
    Event::kHvmNmi,
    Event::kHvmSmi,
    Event::kHvmVmmcall,
    Event::kHvmHlt,
    Event::kHvmInvlpg,
    Event::kHvmMce,
    Event::kHvmIoportRead,
    Event::kHvmIoportWrite,
    Event::kHvmIomemRead,
    Event::kHvmIomemWrite,
    Event::kHvmClts,
    Event::kHvmLmsw,
    Event::kHvmRdtsc,
    Event::kHvmNpf,
    Event::kHvmRealmodeEmulate,
    Event::kHvmTrap,
    Event::kHvmTrapDebug,
    Event::kHvmVlapic,
    Event::kHvmXcrRead,
    Event::kHvmXcrWrite,
    Event::kShadowNotShadow,
    Event::kShadowFastPropagate,
    Event::kShadowFastMmio,
    Event::kShadowFalseFastPath,
    Event::kShadowMmio,
    Event::kShadowFixup,
    Event::kShadowDomfDying,
    Event::kShadowEmulate,
    Event::kShadowEmulateUnshadowUser,
    Event::kShadowEmulateUnshadowEvtinj,
    Event::kShadowEmulateUnshadowUnhandled,
    Event::kShadowWrmapBf,
    Event::kShadowPreallocUnpin,
    Event::kShadowResyncFull,
    Event::kShadowResyncOnly,
};

}  // namespace

std::span<const Event> HandlerEvents() { return kHandlerEvents; }

void ExitContents::Take(const Record& record) {
  const HandlerRecord classified = ClassifyHandlerRecord(record);
  if (classified.rank == kNothing) return;
  if (classified.kind >= ExitKind::kPortRead && classified.kind <= ExitKind::kMmioWrite) {
    if (accesses < kMaxAccesses) access[accesses] = {classified.kind, classified.number};
    ++accesses;
  }
  emulated |= IsEmulation(classified);
  if (IsResync(classified)) {
    resync = true;
    if (kind == ExitKind::kCrWrite) number |= kResynced;
  }
  if (classified.rank <= rank) return;
  kind = classified.kind;
  rank = classified.rank;
  number = classified.number;
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
    case ExitKind::kMmioRead:
    case ExitKind::kMmioWrite:
      return fmt::format("0x{:x}", number);
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
