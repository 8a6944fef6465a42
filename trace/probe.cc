#include "trace/probe.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::trace {
namespace {

// The number of places of each pCPU's trace that are read, beside its beginning.
constexpr size_t kPlaces = 16;

// Returns a part of the pCPU's windows: from the index `first` on, until `bytes` are exceeded.
PcpuWindows Part(const PcpuWindows& all, size_t first, uint64_t bytes) {
  PcpuWindows part{.pcpu = all.pcpu, .windows = {}, .tsc_offset = all.tsc_offset};
  for (size_t i = first; i < all.windows.size(); ++i) {
    Window window = all.windows[i];
    window.end = std::min(window.end, window.begin + bytes);
    part.windows.push_back(window);
    bytes -= window.end - window.begin;
    if (bytes == 0) break;
  }
  return part;
}

// Gives the records of these windows alone; one that is cut at the end of the part is passed over.
template <typename Handler>
void GivePart(Bytes file, PcpuWindows part, const EventTargets<AnyTarget>& wanted,
              Handler& handler) {
  const WindowIndex index{.pcpus = {std::move(part)}, .damages = {}};
  OrderedStream(file, index)
      .ForEach<false, RecordOrder::kTime>(OrderedStream::kEnd, wanted, handler);
}

// The events that DialectEvidence and ClockEvidence take, and those that say which vCPU runs.
constexpr auto kEvidence = TargetsOf({
    Event::kRunstateChange,
    Event::kContinueRunning,
    Event::kHvmVmexit,
    Event::kHvmSvmExit,
    Event::kHvmIntr,
    Event::kHvmSmi,
    Event::kHvmCpuid,
    Event::kSchedSwitchInfprev,
    Event::kSchedSwitchInfnext,
    Event::kSchedSwitchInfcont,
    Event::kCsched2CreditReset,
    Event::kCsched2CreditBurn,
    Event::kCsched2TickleCheck,
    Event::kCsched2RunqCandidate,
    Event::kRtdsBudgetBurn,
    Event::kRtdsBudgetReplenish,
    Event::kMemDecreaseReservation,
    Event::kMemPodPopulate,
    Event::kMemPodZeroReclaim,
    Event::kShadowEmulateUnshadowUser,
    Event::kShadowEmulateUnshadowEvtinj,
    Event::kShadowEmulateUnshadowUnhandled,
    Event::kPvMathStateRestore,
});

class Prober {
 public:
  explicit Prober(Bytes file) : file_(file) {}

  void Observe(PcpuWindows part) {
    clock_.Break(part.pcpu);
    GivePart(file_, std::move(part), kEvidence, *this);
  }

  void TakeRecord(const Record& record, const AnyTarget& /*target*/) {
    dialect_.Observe(record);
    clock_.Observe(record);
  }
  // The first item of a pCPU is its begin, which has the time of its first record.
  void TakeNonRecord(const Item& item) {
    const Record& record = item.record;
    if (!probe_.first_tsc || record.tsc < *probe_.first_tsc) probe_.first_tsc = record.tsc;
    if (item.kind == ItemKind::kLost || item.kind == ItemKind::kDamaged) clock_.Break(record.pcpu);
  }

  Probe Conclude() {
    probe_.dialect = dialect_.Conclude();
    probe_.clock = clock_.Conclude();
    return probe_;
  }

 private:
  Bytes file_;
  DialectEvidence dialect_;
  ClockEvidence clock_;
  Probe probe_;
};

// Takes records until one shows the vendor.
class VendorHandler {
 public:
  static constexpr auto kEvents =
      TargetsOf({Event::kRunstateChange, Event::kContinueRunning, Event::kHvmVmexit,
                 Event::kHvmSvmExit, Event::kHvmIntr, Event::kHvmSmi});

  void TakeRecord(const Record& record, const AnyTarget& /*target*/) {
    const bool is_change =
        record.event == Event::kRunstateChange || record.event == Event::kContinueRunning;
    if (is_change || known()) return;
    evidence_.Observe(record);
    dialect_ = evidence_.Conclude();
  }
  void TakeNonRecord(const Item& /*item*/) const {}
  [[nodiscard]] bool known() const { return dialect_.vendor_source != DialectSource::kUnknown; }
  [[nodiscard]] const Dialect& dialect() const { return dialect_; }

 private:
  DialectEvidence evidence_;
  Dialect dialect_;
};

// Notes which domains have vCPUs.
class DomainsSeen {
 public:
  static constexpr auto kEvents = TargetsOf({Event::kRunstateChange, Event::kContinueRunning});

  void TakeRecord(const Record& record, const AnyTarget& /*target*/) {
    if (record.event != Event::kRunstateChange) return;
    const DomainId domain = UnpackVcpu(record.payload.Word(0)).domain;
    if (domain != kIdleDomain) seen_.insert(domain);
  }
  void TakeNonRecord(const Item& /*item*/) const {}
  [[nodiscard]] size_t count() const { return seen_.size(); }

 private:
  absl::flat_hash_set<DomainId> seen_;
};

// Returns the pCPU's windows from the index `first` on, at most so many.
PcpuWindows WindowsFrom(const PcpuWindows& all, size_t first, size_t most) {
  const auto begin = all.windows.begin() + static_cast<ptrdiff_t>(first);
  const size_t count = std::min(most, all.windows.size() - first);
  return {all.pcpu, {begin, begin + static_cast<ptrdiff_t>(count)}, all.tsc_offset};
}

}  // namespace

Dialect FindVendor(const TraceFile& file, uint64_t most_bytes) {
  VendorHandler vendor;
  uint64_t read = 0;
  // Each pCPU alone: nothing here depends on the others, and a merge takes longer.
  for (size_t first = 0, open = 1; open > 0 && read < most_bytes; first = 2 * first + 1) {
    open = 0;
    for (const PcpuWindows& pcpu : file.index().pcpus) {
      if (first >= pcpu.windows.size()) continue;
      ++open;
      PcpuWindows part = WindowsFrom(pcpu, first, first + 1);
      for (const Window& each : part.windows) read += each.end - each.begin;
      GivePart(file.bytes(), std::move(part), VendorHandler::kEvents, vendor);
      if (vendor.known()) return vendor.dialect();
    }
  }
  return vendor.dialect();
}

size_t CountDomains(const TraceFile& file, size_t enough) {
  constexpr size_t kRounds = 16;
  constexpr uint64_t kBytesOfRound = uint64_t{256} << 10;
  const auto& pcpus = file.index().pcpus;
  const uint64_t share = kBytesOfRound / std::max<size_t>(pcpus.size(), 1);
  DomainsSeen domains;
  for (size_t round = 0; round < kRounds; ++round) {
    for (const PcpuWindows& pcpu : pcpus) {
      GivePart(file.bytes(), Part(pcpu, pcpu.windows.size() * round / kRounds, share),
               DomainsSeen::kEvents, domains);
      if (domains.count() >= enough) return enough;
    }
    if (domains.count() < enough / 3) break;
  }
  return domains.count();
}

Probe ProbeTrace(const TraceFile& file, uint64_t max_bytes) {
  const auto& pcpus = file.index().pcpus;
  Prober prober(file.bytes());
  // Half for the beginnings, where long rows give the clock; half for places all over the trace.
  const uint64_t share = max_bytes / 2 / std::max<size_t>(pcpus.size(), 1);
  for (const PcpuWindows& pcpu : pcpus) {
    prober.Observe(Part(pcpu, 0, share));
    const size_t count = pcpu.windows.size();
    const size_t step = std::max<size_t>(count / (kPlaces + 1), 1);
    size_t places = 0;
    for (size_t i = step; i < count && places < kPlaces; i += step, ++places) {
      prober.Observe(Part(pcpu, i, share / kPlaces));
    }
  }
  return prober.Conclude();
}

Tsc LastTsc(const TraceFile& file) {
  OrderedStream stream = file.Stream(OrderedStream::kEnd);
  Tsc last;
  for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
    last = batch.back().record.tsc;
  }
  return last;
}

}  // namespace xenoscope::trace
