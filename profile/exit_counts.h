// How often each vCPU left its guest for each reason, beside a profile of the same time: what a
// row of exits has, divided by their number, is the cost of one exit.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/profile.h"
#include "correlate/timeline.h"

namespace xenoscope::profile {

// Whether the rows of a profile by these columns are of exits as a whole, which can be counted.
[[nodiscard]] bool HasExitCounts(const std::vector<correlate::Dimension>& by);

struct ExitCount {
  VcpuRef vcpu;
  correlate::Context exit;  // kExit, with the reason alone
  uint64_t count = 0;
};

// Counts the VM exits that begin within `sampled`. Memory: one number for each vCPU and reason.
class ExitCounter final : public correlate::TimelineObserver {
 public:
  explicit ExitCounter(TscRange sampled) : sampled_(sampled) {}

  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnExit(const correlate::ExitArc& arc) override {
    if (!sampled_.Contains(arc.range.begin)) return;
    const auto exit = correlate::ContextOf(correlate::SegmentKind::kExit, arc.nested, arc.reason);
    ++counts_[{arc.vcpu, exit}];
  }

  // Returns the counts, by vCPU and exit.
  [[nodiscard]] std::vector<ExitCount> Counts() const;

 private:
  TscRange sampled_;
  absl::flat_hash_map<std::pair<VcpuRef, correlate::Context>, uint64_t> counts_;
};

}  // namespace xenoscope::profile
