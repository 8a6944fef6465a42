// The time in the guest of each vCPU, by level: the guest itself (L1), and the guests that it runs
// (L2). Entries and exits of these are marked on SVM only. A vCPU without such has no figures here.
#include <memory>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

constexpr GroupInfo kGuestLevelsGroup{"guest_levels", "Time in the guest and its nested guests",
                                      SectionLevel::kVcpu};

class GuestLevels final : public Mergeable<GuestLevels> {
 public:
  void Subscribe(Subscriptions& /*subscriptions*/) const override {}

  void StopCounting(const correlate::Timeline& timeline) override {
    for (const auto& track : timeline.vcpus()) {
      if (track->in_guest == 0) continue;
      vcpus_.At(track->index, track->ref) = {track->in_guest - track->in_nested_guest,
                                             track->in_nested_guest};
    }
  }

  void Merge(GuestLevels& earlier) {
    vcpus_.MergeFrom(earlier.vcpus_, [](Levels& levels, const Levels& more) {
      levels.guest += more.guest;
      levels.nested += more.nested;
    });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kGuestLevelsGroup}; }

  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Levels* const levels = vcpus_.Find(vcpu);
    if (levels == nullptr || levels->nested == 0) return;
    MetricGroup& group = out.AddGroup(kGuestLevelsGroup);
    group.rows.push_back(
        MetricRow{"guest", {}, {}}.Add("cycles", MetricUnit::kCycles, levels->guest));
    group.rows.push_back(
        MetricRow{"nested guest", {}, {}}.Add("cycles", MetricUnit::kCycles, levels->nested));
  }

 private:
  struct Levels {
    Cycles guest = 0;
    Cycles nested = 0;
  };

  PerVcpu<Levels> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestLevels() { return std::make_unique<GuestLevels>(); }

}  // namespace xenoscope::analysis
