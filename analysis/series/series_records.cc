// Series that count single records: hypercalls, injected interrupts, grants, losses.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "analysis/series/series_registry.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

// Hypercalls by name, including those inside multicalls.
class Hypercalls : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override {
    for (const Event event : {Event::kPvHypercall, Event::kPvHypercallV2,
                              Event::kPvHypercallSubcall, Event::kHvmVmmcall}) {
      subscriptions.Record(event);
    }
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    const trace::Payload& payload = attributed.record.payload;
    const bool packed = attributed.record.event == Event::kPvHypercallV2 ||
                        attributed.record.event == Event::kPvHypercallSubcall;
    sums().Count(packed ? trace::HypercallOp(payload.Word(0)) : payload.Word(payload.count() - 1),
                 attributed.record.tsc, 1);
  }
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    const std::string_view name = trace::HypercallName(static_cast<uint32_t>(key));
    return name.empty() ? fmt::format("hypercall_{}", key) : std::string(name);
  }
};

// Virtual interrupts that Xen injected, by domain and vector.
class GuestInterrupts : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    const trace::Record& record = attributed.record;
    sums().Count(KeyOf(attributed.vcpu->ref.domain, record.payload.Word(0)), record.tsc, 1);
  }
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return fmt::format("{} 0x{:02x}", ToString(DomainOfKey(key)), WhatOfKey(key));
  }
};

// Grant operations by the domain that the record names, whose pages they are.
class GrantMaps : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kMemPageGrantMap);
    subscriptions.Record(Event::kMemPageGrantUnmap);
    subscriptions.Record(Event::kMemPageGrantTransfer);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    const trace::Record& record = attributed.record;
    const DomainId domain{static_cast<uint16_t>(record.payload.Word(0))};
    if (Wants(domain)) sums().Count(KeyOf(domain, record.id & 0xf), record.tsc, 1);
  }
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    const char* const what = WhatOfKey(key) == 1   ? "map"
                             : WhatOfKey(key) == 2 ? "unmap"
                                                   : "transfer";
    return fmt::format("{} {}", ToString(DomainOfKey(key)), what);
  }
};

// Records for which Xen had no room, in the interval in which the trace goes on.
class LostRecords : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.Losses(); }
  void OnLoss(const trace::Item& item) override {
    if (item.kind != trace::ItemKind::kLost) return;
    sums().Count(item.record.pcpu.value, item.record.tsc, item.record.payload.Word(0));
  }
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return fmt::format("p{}", key);
  }
};

}  // namespace

std::unique_ptr<Series> MakeHypercalls(DomainFilter filter) {
  return std::make_unique<Hypercalls>(std::move(filter));
}
std::unique_ptr<Series> MakeGuestInterrupts(DomainFilter filter) {
  return std::make_unique<GuestInterrupts>(std::move(filter));
}
std::unique_ptr<Series> MakeGrantMaps(DomainFilter filter) {
  return std::make_unique<GrantMaps>(std::move(filter));
}
std::unique_ptr<Series> MakeLostRecords(DomainFilter filter) {
  return std::make_unique<LostRecords>(std::move(filter));
}

}  // namespace xenoscope::analysis
