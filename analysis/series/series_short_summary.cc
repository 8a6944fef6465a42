// The short summaries: run time, and the time of exits in a few large classes, per domain or per
// address space (cr3). The classes are those of xenalyze's short summary. The time of an exit is
// that of its arc, so a halted vCPU's blocked time is in "hlt" and not in "running".
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/address_space.h"

namespace xenoscope::analysis {
namespace {

using correlate::ExitArc;
using correlate::RunstateInterval;
using correlate::Timeline;
using correlate::TimelineState;
using trace::Event;

enum Class : uint8_t {
  kRunning,
  kEmulate,
  kUnsync,
  kFixup,
  kMmio,
  kPropagate,
  kCr3Write,
  kVmcall,
  kIntr,
  kHlt,
  kOther,
  kClasses
};

constexpr const char* kClassNames[kClasses] = {"running", "emulate",   "unsync", "fixup",
                                               "mmio",    "propagate", "cr3",    "vmcall",
                                               "intr",    "hlt",       "other"};

// Returns the outcome of a fault, from the records that Xen writes while handling it.
std::optional<Class> ClassOfRecord(const trace::Record& record) {
  switch (record.event) {
    case Event::kShadowEmulate:
      return kEmulate;
    case Event::kShadowResyncFull:
    case Event::kShadowResyncOnly:
      return kUnsync;
    case Event::kShadowFixup:
      return kFixup;
    case Event::kShadowMmio:
    case Event::kShadowFastMmio:
      return kMmio;
    case Event::kShadowFastPropagate:
      return kPropagate;
    case Event::kHvmCrWrite:
      if (record.payload.Word(0) == kCr3) return kCr3Write;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns the class of an exit by its reason alone. One table serves both vendors: VMX has no
// reason above 0x50, and on SVM 1, 12 and 18 are accesses of CR1, CR12 and CR2, which Xen does not
// intercept.
Class ClassOfReason(uint32_t reason) {
  switch (reason & 0xffff) {
    case 1:
    case 0x60:
      return kIntr;
    case 12:
    case 0x78:
      return kHlt;
    case 18:
    case 0x81:
      return kVmcall;
    default:
      return kOther;
  }
}

// The class of an exit comes from the handler's records, else from its reason.
class ShortSummary : public Series {
 public:
  ShortSummary(DomainFilter filter, bool by_cr3) : Series(std::move(filter)), by_cr3_(by_cr3) {}

  void Subscribe(Subscriptions& subscriptions) const override {
    for (const Event event :
         {Event::kShadowEmulate, Event::kShadowResyncFull, Event::kShadowResyncOnly,
          Event::kShadowFixup, Event::kShadowMmio, Event::kShadowFastMmio,
          Event::kShadowFastPropagate, Event::kHvmCrWrite}) {
      subscriptions.Record(event);
    }
    subscriptions.RunstateIntervals();
    subscriptions.Exits();
  }

  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    Vcpu& vcpu = vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    const trace::Record& record = attributed.record;
    const auto found = ClassOfRecord(record);
    if (found && attributed.vcpu->arc_open) {
      EndPart(vcpu, attributed.vcpu->ref.domain, attributed.vcpu->exit_reason,
              {attributed.vcpu->exit_tsc, record.tsc});
      // A write of cr3 has its own class, whatever pages Xen synchronises for it.
      if (vcpu.handled != kCr3Write) vcpu.handled = found;
    }
    const auto cr3 = WrittenCr3(record);
    if (!by_cr3_ || !cr3) return;
    if (attributed.vcpu->arc_open) {
      EndPart(vcpu, attributed.vcpu->ref.domain, attributed.vcpu->exit_reason,
              {attributed.vcpu->exit_tsc, record.tsc});
    }
    CloseRun(vcpu, attributed.vcpu->ref.domain, {attributed.vcpu->reported_at, record.tsc});
    vcpu.run_since = record.tsc;
    vcpu.cr3 = *cr3;
    vcpu.cr3_known = true;
  }

  void OnRunstateInterval(const RunstateInterval& run) override {
    if (run.state != TimelineState::kRunning || !Wants(run.vcpu.domain)) return;
    CloseRun(vcpus_.At(run.vcpu_index, run.vcpu), run.vcpu.domain,
             {std::max(run.range.begin, run.reported_at), run.range.end});
  }

  void OnExit(const ExitArc& arc) override {
    if (!Wants(arc.vcpu.domain)) return;
    Vcpu& vcpu = vcpus_.At(arc.vcpu_index, arc.vcpu);
    EndPart(vcpu, arc.vcpu.domain, arc.reason, arc.range);
    vcpu.handled.reset();
  }

  void OnIntervalEnd(const Timeline& timeline, Tsc end) override {
    for (const auto& track : timeline.vcpus()) {
      if (!Wants(track->ref.domain)) continue;
      const Vcpu& vcpu = vcpus_.At(track->index, track->ref);
      if (by_cr3_ && !vcpu.cr3_known) continue;
      const DomainId domain = track->ref.domain;
      if (track->state == TimelineState::kRunning) {
        sums().Carry(Key(vcpu, domain, kRunning), std::max(track->reported_at, vcpu.run_since),
                     end);
      }
      if (track->arc_open) {
        sums().Carry(Key(vcpu, domain, vcpu.ClassOf(track->exit_reason)),
                     std::max(track->exit_tsc, vcpu.part_since), end);
      }
    }
  }

  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    const char* const what = kClassNames[key & 0xf];
    if (!by_cr3_) return fmt::format("{} {}", ToString(DomainOfKey(key)), what);
    return fmt::format("{} cr3 0x{:x} {}", ToString(DomainOfKey(key)), WhatOfKey(key) >> 4, what);
  }

 private:
  struct Vcpu {
    std::optional<Class> handled;  // class of the open exit, by its handler's records
    Tsc part_since;  // start of the open exit's present class or cr3, if later than the exit
    Tsc run_since;   // start of the present cr3
    uint64_t cr3 = 0;
    bool cr3_known = false;

    Class ClassOf(uint32_t reason) const { return handled ? *handled : ClassOfReason(reason); }
  };

  uint64_t Key(const Vcpu& vcpu, DomainId domain, Class what) const {
    return KeyOf(domain, (by_cr3_ ? vcpu.cr3 << 4 : 0) | what);
  }
  // Ends a part of the open exit, which began with the exit or with the end of the part before.
  void EndPart(Vcpu& vcpu, DomainId domain, uint32_t reason, TscRange exit) {
    if (!by_cr3_ || vcpu.cr3_known) {
      sums().Close(Key(vcpu, domain, vcpu.ClassOf(reason)),
                   {std::max(exit.begin, vcpu.part_since), exit.end});
    }
    vcpu.part_since = exit.end;
  }
  void CloseRun(const Vcpu& vcpu, DomainId domain, TscRange range) {
    if (by_cr3_ && !vcpu.cr3_known) return;
    sums().Close(Key(vcpu, domain, kRunning), {std::max(vcpu.run_since, range.begin), range.end});
  }

  bool by_cr3_;
  PerVcpu<Vcpu> vcpus_;
};

}  // namespace

std::unique_ptr<Series> MakeDomainShortSummary(DomainFilter filter) {
  return std::make_unique<ShortSummary>(std::move(filter), false);
}
std::unique_ptr<Series> MakeCr3ShortSummary(DomainFilter filter) {
  return std::make_unique<ShortSummary>(std::move(filter), true);
}

}  // namespace xenoscope::analysis
