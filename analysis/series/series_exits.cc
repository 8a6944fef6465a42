// VM exits by reason: their number, and the time until the guest went on (ExitArc).
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "analysis/series/series_registry.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

using correlate::ExitArc;
using correlate::Timeline;

constexpr uint64_t KeyOfExit(uint32_t reason, bool nested) {
  return (reason & 0xffff) | uint64_t{nested} << 16;
}

class ExitSeries : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.Exits(); }
  std::string LineName(uint64_t key, const TraceMetadata& metadata) const override {
    const auto reason = static_cast<uint32_t>(key & 0xffff);
    std::string name(trace::ExitReasonName(metadata.dialect.vendor, reason));
    if (name.empty()) name = fmt::format("reason_0x{:x}", reason);
    return key >> 16 == 0 ? name : name + " (nested)";
  }
};

// The number of finished exits, as the summary counts them, at their ends.
class ExitCounts : public ExitSeries {
 public:
  using ExitSeries::ExitSeries;
  void OnExit(const ExitArc& arc) override {
    if (!arc.finished || !Wants(arc.vcpu.domain)) return;
    sums().Count(KeyOfExit(arc.reason, arc.nested), arc.range.end, 1);
  }
};

// The time of exits, including those that a loss or the end of the trace cut off.
class ExitTimes : public ExitSeries {
 public:
  using ExitSeries::ExitSeries;
  void OnExit(const ExitArc& arc) override {
    if (Wants(arc.vcpu.domain)) sums().Close(KeyOfExit(arc.reason, arc.nested), arc.range);
  }
  void OnIntervalEnd(const Timeline& timeline, Tsc end) override {
    for (const auto& vcpu : timeline.vcpus()) {
      if (!vcpu->arc_open || !Wants(vcpu->ref.domain)) continue;
      sums().Carry(KeyOfExit(vcpu->exit_reason, vcpu->exit_nested), vcpu->exit_tsc, end);
    }
  }
};

}  // namespace

std::unique_ptr<Series> MakeExitCounts(DomainFilter filter) {
  return std::make_unique<ExitCounts>(std::move(filter));
}
std::unique_ptr<Series> MakeExitTimes(DomainFilter filter) {
  return std::make_unique<ExitTimes>(std::move(filter));
}

}  // namespace xenoscope::analysis
