// Scatterplots of VM exits: the guest's address, and the length of I/O and interrupts.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/scatter/scatter_registry.h"
#include "analysis/summary/address_space.h"

namespace xenoscope::analysis {
namespace {

using correlate::ExitArc;
using trace::Event;

// The guest's address at each exit.
class ExitAddressScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmVmexit);
    subscriptions.Record(Event::kHvmSvmExit);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    const trace::Record& record = attributed.record;
    Point(KeyOf(attributed.vcpu->ref, 0), record.tsc,
          trace::Is64(record.id) ? record.payload.Word64(1) : record.payload.Word(1));
  }
};

// The length of exits that accessed an I/O port, at the time of the exit.
class IoScatter : public Scatter {
 public:
  explicit IoScatter(ScatterOptions options)
      : Scatter(std::move(options.filter)), port_(options.parameter) {}
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmIoportRead);
    subscriptions.Record(Event::kHvmIoportWrite);
    subscriptions.Exits();
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !attributed.vcpu->arc_open) return;
    const auto port = static_cast<uint16_t>(attributed.record.payload.Word(0));
    if (port_ && port != *port_) return;
    const bool write = attributed.record.event == Event::kHvmIoportWrite;
    pending_.At(attributed.vcpu->index, attributed.vcpu->ref) = {true, write, port};
  }
  void OnExit(const ExitArc& arc) override {
    Access& access = pending_.At(arc.vcpu_index, arc.vcpu);
    if (access.known && arc.finished && Wants(arc.vcpu.domain)) {
      Point(uint64_t{access.port} << 1 | (access.write ? 1 : 0), arc.range.begin,
            arc.range.Length());
    }
    access.known = false;
  }
  std::string LineName(uint64_t key) const override {
    return fmt::format("0x{:x} {}", key >> 1, (key & 1) != 0 ? "write" : "read");
  }

 private:
  struct Access {
    bool known = false;
    bool write = false;
    uint16_t port = 0;
  };
  std::optional<uint32_t> port_;
  PerVcpu<Access> pending_;
};

// Exits for external interrupts, whose vector VMX reports: their length, or the guest's address.
class ExternalInterruptScatter : public Scatter {
 public:
  ExternalInterruptScatter(ScatterOptions options, bool address)
      : Scatter(std::move(options.filter)), vector_(options.parameter), address_(address) {}
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmIntr);
    subscriptions.Exits();
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !attributed.vcpu->arc_open ||
        attributed.record.payload.count() == 0) {
      return;
    }
    const uint32_t vector = attributed.record.payload.Word(0);
    if (vector_ && vector != *vector_) return;
    pending_.At(attributed.vcpu->index, attributed.vcpu->ref) = vector;
  }
  void OnExit(const ExitArc& arc) override {
    std::optional<uint32_t>& vector = pending_.At(arc.vcpu_index, arc.vcpu);
    if (vector && (arc.finished || address_) && Wants(arc.vcpu.domain)) {
      Point(*vector, arc.range.begin, address_ ? arc.rip : arc.range.Length());
    }
    vector.reset();
  }
  std::string LineName(uint64_t key) const override { return fmt::format("vector 0x{:02x}", key); }

 private:
  std::optional<uint32_t> vector_;
  bool address_;
  PerVcpu<std::optional<uint32_t>> pending_;
};

// The page table that a vCPU changes to.
class Cr3Scatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmCrWrite);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    const auto cr3 = WrittenCr3(attributed.record);
    if (!cr3 || attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    Point(KeyOf(attributed.vcpu->ref, 0), attributed.record.tsc, *cr3);
  }
};

// The value that a guest read from the TSC where Xen emulated the read.
class RdtscScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmRdtsc);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    Point(KeyOf(attributed.vcpu->ref, 0), attributed.record.tsc,
          attributed.record.payload.Word64(0));
  }
};

}  // namespace

std::unique_ptr<Scatter> MakeExitAddressScatter(ScatterOptions options) {
  return std::make_unique<ExitAddressScatter>(std::move(options.filter));
}
std::unique_ptr<Scatter> MakeIoScatter(ScatterOptions options) {
  return std::make_unique<IoScatter>(std::move(options));
}
std::unique_ptr<Scatter> MakeExternalInterruptCycles(ScatterOptions options) {
  return std::make_unique<ExternalInterruptScatter>(std::move(options), false);
}
std::unique_ptr<Scatter> MakeExternalInterruptAddress(ScatterOptions options) {
  return std::make_unique<ExternalInterruptScatter>(std::move(options), true);
}
std::unique_ptr<Scatter> MakeCr3Scatter(ScatterOptions options) {
  return std::make_unique<Cr3Scatter>(std::move(options.filter));
}
std::unique_ptr<Scatter> MakeRdtscScatter(ScatterOptions options) {
  return std::make_unique<RdtscScatter>(std::move(options.filter));
}

}  // namespace xenoscope::analysis
