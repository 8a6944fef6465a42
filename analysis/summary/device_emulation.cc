// Timers and interrupt controllers that Xen emulates (TRC_HVM_EMUL): the number of starts, stops,
// firings and reads of each, by the vCPU that ran on the pCPU. That need not be the timer's vCPU: a
// callback runs on any pCPU, which may be idle.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"
#include "trace/events.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

constexpr auto kFirst = static_cast<size_t>(Event::kHvmEmulHpetStartTimer);
constexpr auto kLast = static_cast<size_t>(Event::kHvmEmulLapicPicIntr);
using Counts = std::array<uint64_t, kLast - kFirst + 1>;

void AddRows(const Counts& counts, MetricGroup& group) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto event = static_cast<Event>(kFirst + i);
    group.rows.push_back(MetricRow{std::string(trace::Info(event).name), {}, {}}.Add(
        "count", MetricUnit::kCount, counts[i]));
  }
}

constexpr GroupInfo kDeviceEmulationOfTraceGroup{
    "device_emulation", "Emulated timers and interrupt controllers", SectionLevel::kTrace};
constexpr GroupInfo kDeviceEmulationOfVcpuGroup{
    "device_emulation", "Emulated devices, while it ran", SectionLevel::kVcpu};

class DeviceEmulation final : public Mergeable<DeviceEmulation> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    for (size_t event = kFirst; event <= kLast; ++event) {
      subscriptions.Record(static_cast<Event>(event));
    }
  }

  void OnRecord(const AttributedRecord& attributed) override {
    const size_t i = static_cast<size_t>(attributed.record.event) - kFirst;
    ++all_[i];
    if (attributed.vcpu != nullptr) ++vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref)[i];
  }

  void Merge(DeviceEmulation& earlier) {
    AddCounts(earlier.all_, all_);
    vcpus_.MergeFrom(earlier.vcpus_,
                     [](Counts& counts, const Counts& more) { AddCounts(more, counts); });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kDeviceEmulationOfTraceGroup, kDeviceEmulationOfVcpuGroup};
  }
  void DescribeTrace(const TraceMetadata& /*metadata*/, Section& out) const override {
    AddRows(all_, out.AddGroup(kDeviceEmulationOfTraceGroup));
  }
  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Counts* counts = vcpus_.Find(vcpu);
    if (counts == nullptr) return;
    AddRows(*counts, out.AddGroup(kDeviceEmulationOfVcpuGroup));
  }

 private:
  Counts all_{};
  PerVcpu<Counts> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeDeviceEmulation() { return std::make_unique<DeviceEmulation>(); }

}  // namespace xenoscope::analysis
