// How often each vCPU left its guest for each reason, beside a profile of the same time: what a
// row of exits has, divided by their number, is the cost of one exit. And how often PV guests
// entered Xen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/profile.h"
#include "correlate/pv_entries.h"
#include "correlate/timeline.h"

namespace xenoscope::profile {

// Whether the rows of a profile by these columns are of exits as a whole, which can be counted.
[[nodiscard]] bool HasExitCounts(const std::vector<correlate::Dimension>& by);

struct ExitCount {
  VcpuRef vcpu;
  correlate::Context exit;  // kExit, with the reason alone
  uint64_t count = 0;
};

// What a PV domain did in Xen, with the bounds of correlate::PvEntry.
struct PvEntries {
  DomainId domain;
  correlate::MarkKind kind = correlate::MarkKind::kHypercall;
  uint64_t count = 0;
  Cycles at_most = 0;
};

// Counts the VM exits, and the entries of PV guests, that begin within `sampled`. Memory: a number
// for each vCPU and reason.
class ExitCounter final : public correlate::TimelineObserver {
 public:
  explicit ExitCounter(TscRange sampled) : sampled_(sampled) {}

  [[nodiscard]] bool WantsSegments() const override { return false; }
  void OnMark(const correlate::Mark& mark) override {
    bounds_.OnMark(mark, [this](const auto&... entry) { Add(entry...); });
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    bounds_.OnRunstateInterval(interval, [this](const auto&... entry) { Add(entry...); });
  }
  void OnExit(const correlate::ExitArc& arc) override {
    if (!sampled_.Contains(arc.range.begin)) return;
    const auto exit = correlate::ContextOf(correlate::SegmentKind::kExit, arc.nested, arc.reason);
    ++counts_[{arc.vcpu, exit}];
  }

  // Returns the counts, by vCPU and exit.
  [[nodiscard]] std::vector<ExitCount> Counts() const;
  // Returns what PV guests did, by domain and kind. Call it once, after the last record.
  [[nodiscard]] std::vector<PvEntries> Entries();

 private:
  void Add(const correlate::Mark& mark, TscRange at_most);

  TscRange sampled_;
  correlate::PvEntryBounds bounds_{sampled_};
  absl::flat_hash_map<std::pair<VcpuRef, correlate::Context>, uint64_t> counts_;
  std::map<std::pair<DomainId, correlate::MarkKind>, PvEntries> entries_;
};

}  // namespace xenoscope::profile
