// Analyses of a trace that something else passes over, such as a profile: they need no pass and no
// timeline of their own.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/dispatcher.h"
#include "analysis/document.h"
#include "correlate/pipeline_observer.h"

namespace xenoscope::analysis {

class ObservedTrace final : public correlate::TraceObserver {
 public:
  // The analyses subscribe to no entries (Subscriptions::Entries), which are not observed.
  explicit ObservedTrace(std::vector<std::unique_ptr<Analysis>> analyses);

  // Returns what the analyses describe, after the pass. `metadata` is complete but for its range.
  // Nothing if the trace was not observed. To be called once.
  [[nodiscard]] std::optional<Document> Describe(TraceMetadata metadata);
  // The time from the first to the last record, in cycles; after OnTraceEnd.
  [[nodiscard]] TscRange range() const { return range_; }

  [[nodiscard]] bool Wants(trace::Event event) const override {
    return !dispatcher_.RouteOf(event).Empty();
  }
  void OnRecord(const trace::Record& record, const correlate::Timeline& timeline) override {
    dispatcher_.RouteOf(record.event).Take({record, timeline.Current(record.pcpu)});
  }
  void OnNonRecord(const trace::Item& item) override;
  void OnTraceEnd(const correlate::Timeline& timeline) override;
  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    dispatcher_.OnRunstateInterval(interval);
  }
  void OnExit(const correlate::ExitArc& arc) override { dispatcher_.OnExit(arc); }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState before) override {
    dispatcher_.OnState(vcpu, before);
  }

 private:
  std::vector<std::unique_ptr<Analysis>> analyses_;
  Dispatcher dispatcher_;
  std::set<VcpuRef> vcpus_;  // those that the trace named; filled at its end
  TscRange range_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace xenoscope::analysis
