#include "report/timeline/vcpu_chart.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "correlate/timeline_pass.h"
#include "trace/ordered_stream.h"

namespace xenoscope::report {
namespace {

using correlate::RunstateInterval;
using correlate::Segment;
using correlate::TimelineState;

class Columns final : public correlate::TimelineObserver {
 public:
  Columns(TscRange shown, size_t columns)
      : shown_(shown), column_((shown.Length() + columns - 1) / columns) {}

  bool WantsMarks() const override { return false; }

  void OnRunstateInterval(const RunstateInterval& interval) override {
    const TscRange part = interval.range.Intersect(shown_);
    if (IsIdle(interval.vcpu) || part.Empty()) return;
    const auto [begin, end] = Offsets(part);
    if (interval.state == TimelineState::kRunning) {
      Vcpu(interval.vcpu, interval.vcpu_index);
      std::vector<PcpuBin>& bins = pcpus_[interval.pcpu];
      bins.resize(count());
      ForEachBin(begin, end, column_,
                 [&](uint64_t bin, float cycles) { bins[bin].Add(interval.vcpu_index, cycles); });
    } else if (const auto activity = WaitActivityOf(interval.state)) {
      Add(interval.vcpu, interval.vcpu_index, *activity, part);
    }
  }

  void OnSegment(const Segment& segment) override {
    const TscRange part = segment.range.Intersect(shown_);
    if (IsIdle(segment.vcpu) || part.Empty()) return;
    Add(segment.vcpu, segment.vcpu_index, ActivityOf(segment.kind), part);
  }

  size_t count() const { return (shown_.Length() + column_ - 1) / column_; }
  // Returns the cycles of a column. The last column may be shorter than the others.
  float LengthOf(size_t column) const {
    return static_cast<float>(std::min(column_, shown_.Length() - column * column_));
  }

  struct OfVcpu {
    VcpuRef ref;
    std::vector<VcpuBin> bins;  // the bins; empty when the vCPU did not appear
    double ran = 0;             // time that the vCPU ran, in cycles
    double waited = 0;
  };
  const std::vector<OfVcpu>& vcpus() const { return vcpus_; }  // in the order of VcpuTrack::index
  const std::map<PcpuId, std::vector<PcpuBin>>& pcpus() const { return pcpus_; }

 private:
  std::pair<uint64_t, uint64_t> Offsets(TscRange range) const {
    return {range.begin - shown_.begin, range.end - shown_.begin};
  }

  OfVcpu& Vcpu(VcpuRef ref, uint32_t index) {
    if (index >= vcpus_.size()) vcpus_.resize(size_t{index} + 1);
    OfVcpu& vcpu = vcpus_[index];
    vcpu.ref = ref;
    vcpu.bins.resize(count());
    return vcpu;
  }

  void Add(VcpuRef ref, uint32_t index, VcpuActivity activity, TscRange part) {
    OfVcpu& vcpu = Vcpu(ref, index);
    const auto [begin, end] = Offsets(part);
    ForEachBin(begin, end, column_, [&, which = activity](uint64_t bin, float cycles) {
      vcpu.bins[bin][which] += cycles;
    });
    const auto cycles = static_cast<double>(part.Length());
    if (activity == VcpuActivity::kRunnable) {
      vcpu.waited += cycles;
    } else if (activity != VcpuActivity::kBlocked) {
      vcpu.ran += cycles;
    }
  }

  TscRange shown_;
  Cycles column_;
  std::vector<OfVcpu> vcpus_;
  std::map<PcpuId, std::vector<PcpuBin>> pcpus_;
};

// Returns the vCPUs that are shown, in the order of their ids.
std::vector<uint32_t> Choose(const Columns& columns, const VcpuChartOptions& options,
                             size_t& left_out) {
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < columns.vcpus().size(); ++i) {
    const Columns::OfVcpu& vcpu = columns.vcpus()[i];
    const bool wanted = options.only.empty() ||
                        std::ranges::find(options.only, vcpu.ref.domain) != options.only.end();
    if (!vcpu.bins.empty() && wanted) chosen.push_back(i);
  }
  left_out = 0;
  if (options.max_vcpus != 0 && chosen.size() > options.max_vcpus) {
    left_out = chosen.size() - options.max_vcpus;
    std::ranges::stable_sort(chosen, std::ranges::greater(),
                             [&](uint32_t i) { return columns.vcpus()[i].ran; });
    chosen.resize(options.max_vcpus);
  }
  std::ranges::sort(chosen, {}, [&](uint32_t i) { return columns.vcpus()[i].ref; });
  return chosen;
}

}  // namespace

VcpuChart ChartVcpus(const trace::TraceFile& trace, const VcpuChartOptions& options) {
  const size_t wanted = std::clamp<uint64_t>(options.shown.Length(), 1, options.columns);
  Columns columns(options.shown, wanted);
  correlate::Timeline timeline(columns);
  trace::OrderedStream stream = trace.Stream();
  correlate::PassToTimeline(stream, options.shown.end, timeline);
  timeline.Finish();

  VcpuChart chart;
  const std::vector<uint32_t> chosen = Choose(columns, options, chart.left_out);
  std::vector<uint32_t> row_of(columns.vcpus().size(), VcpuChart::kNoVcpu);
  const auto whole = static_cast<double>(options.shown.Length());
  uint32_t colour = 0;
  for (const uint32_t i : chosen) {
    const Columns::OfVcpu& vcpu = columns.vcpus()[i];
    row_of[i] = static_cast<uint32_t>(chart.vcpus.size());
    if (!chart.vcpus.empty() && chart.vcpus.back().vcpu.domain != vcpu.ref.domain) ++colour;
    VcpuChartRow& row = chart.vcpus.emplace_back();
    row.vcpu = vcpu.ref;
    row.domain = options.domain_name ? options.domain_name(vcpu.ref.domain) : std::string();
    row.colour = colour;
    row.parts = vcpu.bins;
    for (size_t column = 0; column < row.parts.size(); ++column) {
      for (float& cycles : row.parts[column].cycles) cycles /= columns.LengthOf(column);
    }
    row.ran = vcpu.ran / whole;
    row.waited = vcpu.waited / whole;
  }
  for (const auto& [pcpu, bins] : columns.pcpus()) {
    PcpuChartRow& row = chart.pcpus.emplace_back();
    row.pcpu = pcpu;
    for (size_t column = 0; column < bins.size(); ++column) {
      const PcpuBin& bin = bins[column];
      const uint32_t majority_vcpu =
          bin.busy > 0 ? row_of.at(bin.majority_vcpu) : VcpuChart::kNoVcpu;
      row.parts.push_back({bin.busy / columns.LengthOf(column), majority_vcpu});
    }
    row.busy = std::accumulate(bins.begin(), bins.end(), 0.0,
                               [](double sum, const PcpuBin& bin) { return sum + bin.busy; }) /
               whole;
  }
  return chart;
}

}  // namespace xenoscope::report
