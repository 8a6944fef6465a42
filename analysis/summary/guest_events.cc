// Records that guests wrote into the trace (HVMOP_xentrace), by the guests' event numbers. The
// records do not name their writer: it is the vCPU that ran on the pCPU.
#include <fmt/format.h>

#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

constexpr GroupInfo kGuestEventsOfTraceGroup{"guest_events", "Guests' own events, writer unknown",
                                             SectionLevel::kTrace, GroupLayout::kTable,
                                             RowSubject::kVcpus};
constexpr GroupInfo kGuestEventsOfVcpuGroup{"guest_events", "Guest's own events",
                                            SectionLevel::kVcpu};

class GuestEvents final : public Mergeable<GuestEvents> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(trace::Event::kGuest);
  }

  void OnRecord(const AttributedRecord& attributed) override {
    Counts& counts = attributed.vcpu == nullptr
                         ? nobody_
                         : vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    const uint32_t number = attributed.record.id & 0xfff;
    if (number >= counts.size()) counts.resize(number + 1);
    ++counts[number];
  }

  void Merge(GuestEvents& earlier) {
    Add(earlier.nobody_, nobody_);
    vcpus_.MergeFrom(earlier.vcpus_, [](Counts& counts, const Counts& more) { Add(more, counts); });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kGuestEventsOfTraceGroup, kGuestEventsOfVcpuGroup};
  }
  void DescribeTrace(const TraceMetadata& /*metadata*/, Section& out) const override {
    Describe(nobody_, out.AddGroup(kGuestEventsOfTraceGroup));
  }
  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Counts* counts = vcpus_.Find(vcpu);
    if (counts != nullptr) Describe(*counts, out.AddGroup(kGuestEventsOfVcpuGroup));
  }

 private:
  using Counts = std::vector<uint64_t>;  // by number, below 4096

  static void Add(const Counts& more, Counts& to) {
    if (more.size() > to.size()) to.resize(more.size());
    for (size_t number = 0; number < more.size(); ++number) to[number] += more[number];
  }
  static void Describe(const Counts& counts, MetricGroup& group) {
    for (size_t number = 0; number < counts.size(); ++number) {
      if (counts[number] == 0) continue;
      group.rows.push_back(MetricRow{fmt::format("0x{:03x}", number), {}, {}}.Add(
          "count", MetricUnit::kCount, counts[number]));
    }
  }

  Counts nobody_;
  PerVcpu<Counts> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestEvents() { return std::make_unique<GuestEvents>(); }

}  // namespace xenoscope::analysis
