#include "analysis/observed_trace.h"

#include <utility>

#include "analysis/describe.h"
#include "analysis/record_pipeline.h"

namespace xenoscope::analysis {

ObservedTrace::ObservedTrace(std::vector<std::unique_ptr<Analysis>> analyses)
    : analyses_(std::move(analyses)), dispatcher_(SubscribersOf(analyses_)) {}

void ObservedTrace::OnNonRecord(const trace::Item& item) {
  if (!begun_ && item.kind == trace::ItemKind::kPcpuBegin) {
    range_.begin = item.record.tsc;
    begun_ = true;
  }
  if (item.kind == trace::ItemKind::kLossBegin || item.kind == trace::ItemKind::kLost) {
    dispatcher_.Loss(item);
  }
}

void ObservedTrace::OnTraceEnd(const correlate::Timeline& timeline) {
  range_.end = timeline.now();
  for (const auto& vcpu : timeline.vcpus()) vcpus_.insert(vcpu->ref);
  for (const auto& analysis : analyses_) analysis->StopCounting(timeline);
  ended_ = true;
}

std::optional<Document> ObservedTrace::Describe(TraceMetadata metadata) {
  if (!ended_) return std::nullopt;
  metadata.range = range_;
  for (const auto& analysis : analyses_) analysis->Finish(range_.end);
  return DescribeAll(analyses_, vcpus_, metadata, DescribeOn::kOneThread);
}

}  // namespace xenoscope::analysis
