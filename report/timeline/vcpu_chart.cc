#include "report/timeline/vcpu_chart.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace xenoscope::report {

using correlate::RunstateInterval;
using correlate::Segment;
using correlate::TimelineState;

VcpuChartBuilder::VcpuChartBuilder(VcpuChartOptions options) : options_(std::move(options)) {
  const Cycles length = options_.shown.Length();
  const uint64_t columns = std::clamp<uint64_t>(length, 1, options_.columns);
  column_ = (length + columns - 1) / columns;
  count_ = (length + column_ - 1) / column_;
}

void VcpuChartBuilder::Subscribe(analysis::Subscriptions& subscriptions) const {
  subscriptions.RunstateIntervals();
  subscriptions.Segments();
}

void VcpuChartBuilder::StartCounting(const correlate::Timeline& /*timeline*/) {
  vcpus_.clear();
  pcpus_.clear();
}

Cycles VcpuChartBuilder::LengthOf(size_t column) const {
  return std::min(column_, options_.shown.Length() - column * column_);
}

VcpuChartBuilder::OfVcpu& VcpuChartBuilder::VcpuAt(VcpuRef ref, uint32_t index) {
  if (index >= vcpus_.size()) vcpus_.resize(size_t{index} + 1);
  OfVcpu& vcpu = vcpus_[index];
  vcpu.ref = ref;
  if (vcpu.columns.empty()) vcpu.columns.resize(count_);
  return vcpu;
}

void VcpuChartBuilder::OnRunstateInterval(const RunstateInterval& interval) {
  const TscRange part = interval.range.Intersect(options_.shown);
  if (IsIdle(interval.vcpu) || part.Empty()) return;
  if (interval.state == TimelineState::kRunning) {
    VcpuAt(interval.vcpu, interval.vcpu_index);
    Runs& runs = pcpus_[interval.pcpu];
    ForEachColumn(part, [&](uint64_t column, Cycles cycles) {
      runs[column << 32U | interval.vcpu_index] += cycles;
    });
  } else if (const auto activity = WaitActivityOf(interval.state)) {
    Add(interval.vcpu, interval.vcpu_index, *activity, part);
  }
}

void VcpuChartBuilder::OnSegment(const Segment& segment) {
  const TscRange part = segment.range.Intersect(options_.shown);
  if (IsIdle(segment.vcpu) || part.Empty()) return;
  Add(segment.vcpu, segment.vcpu_index, ActivityOf(segment.kind), part);
}

void VcpuChartBuilder::Add(VcpuRef ref, uint32_t index, VcpuActivity activity, TscRange part) {
  OfVcpu& vcpu = VcpuAt(ref, index);
  const auto number = static_cast<size_t>(activity);
  if (vcpu.recent.begin <= part.begin && part.end <= vcpu.recent.end) {
    vcpu.columns[vcpu.recent_number][number] += part.Length();
    return;
  }
  ForEachColumn(part, [&](uint64_t column, Cycles cycles) {
    vcpu.columns[column][number] += cycles;
    const Tsc begin = options_.shown.begin + column * column_;
    vcpu.recent = {begin, begin + column_};
    vcpu.recent_number = column;
  });
}

void VcpuChartBuilder::Merge(const VcpuChartBuilder& earlier) {
  for (uint32_t index = 0; index < earlier.vcpus_.size(); ++index) {
    const OfVcpu& from = earlier.vcpus_[index];
    if (from.columns.empty()) continue;
    OfVcpu& to = VcpuAt(from.ref, index);
    for (size_t column = 0; column < count_; ++column) {
      for (size_t activity = 0; activity < kVcpuActivities; ++activity) {
        to.columns[column][activity] += from.columns[column][activity];
      }
    }
  }
  for (const auto& [pcpu, from] : earlier.pcpus_) {
    Runs& to = pcpus_[pcpu];
    for (const auto& [key, cycles] : from) to[key] += cycles;
  }
}

Cycles VcpuChartBuilder::OfVcpu::Sum(std::initializer_list<VcpuActivity> activities) const {
  Cycles sum = 0;
  for (const Activities& column : columns) {
    for (const VcpuActivity each : activities) sum += column.at(static_cast<size_t>(each));
  }
  return sum;
}

Cycles VcpuChartBuilder::OfVcpu::Ran() const {
  return Sum({VcpuActivity::kGuest, VcpuActivity::kXen, VcpuActivity::kUndivided});
}

std::vector<VcpuChartBuilder::PcpuColumn> VcpuChartBuilder::ColumnsOf(const Runs& runs) const {
  std::vector<PcpuColumn> columns(count_);
  for (const auto& [key, cycles] : runs) {
    PcpuColumn& column = columns[key >> 32U];
    column.busy += cycles;
    const auto vcpu = static_cast<uint32_t>(key);
    const bool is_first = vcpus_[vcpu].ref < vcpus_[column.vcpu].ref;
    if (cycles < column.ran || (cycles == column.ran && !is_first)) continue;
    column.vcpu = vcpu;
    column.ran = cycles;
  }
  return columns;
}

std::vector<uint32_t> VcpuChartBuilder::Choose(size_t& left_out) const {
  std::vector<std::tuple<Cycles, VcpuRef, uint32_t>> chosen;
  for (uint32_t i = 0; i < vcpus_.size(); ++i) {
    const OfVcpu& vcpu = vcpus_[i];
    const bool wanted = options_.only.empty() ||
                        std::ranges::find(options_.only, vcpu.ref.domain) != options_.only.end();
    if (!vcpu.columns.empty() && wanted) chosen.emplace_back(~vcpu.Ran(), vcpu.ref, i);
  }
  left_out = 0;
  std::ranges::sort(chosen);  // those that ran longest first
  if (options_.max_vcpus != 0 && chosen.size() > options_.max_vcpus) {
    left_out = chosen.size() - options_.max_vcpus;
    chosen.resize(options_.max_vcpus);
  }
  std::vector<uint32_t> indices;
  indices.reserve(chosen.size());
  for (const auto& [ran, ref, index] : chosen) indices.push_back(index);
  std::ranges::sort(indices, {}, [&](uint32_t i) { return vcpus_[i].ref; });
  return indices;
}

VcpuChartRow VcpuChartBuilder::RowOf(const OfVcpu& vcpu) const {
  VcpuChartRow row;
  row.vcpu = vcpu.ref;
  row.domain = options_.domain_name ? options_.domain_name(vcpu.ref.domain) : std::string();
  for (size_t column = 0; column < count_; ++column) {
    VcpuBin& part = row.parts.emplace_back();
    for (size_t activity = 0; activity < kVcpuActivities; ++activity) {
      part.cycles.at(activity) = static_cast<float>(vcpu.columns[column].at(activity)) /
                                 static_cast<float>(LengthOf(column));
    }
  }
  const auto whole = static_cast<double>(options_.shown.Length());
  row.ran = static_cast<double>(vcpu.Ran()) / whole;
  row.waited = static_cast<double>(vcpu.Sum({VcpuActivity::kRunnable})) / whole;
  return row;
}

VcpuChart VcpuChartBuilder::Build() const {
  VcpuChart chart;
  const std::vector<uint32_t> chosen = Choose(chart.left_out);
  std::vector<uint32_t> row_of(vcpus_.size(), VcpuChart::kNoVcpu);
  uint32_t colour = 0;
  for (const uint32_t i : chosen) {
    row_of[i] = static_cast<uint32_t>(chart.vcpus.size());
    VcpuChartRow row = RowOf(vcpus_[i]);
    if (!chart.vcpus.empty() && chart.vcpus.back().vcpu.domain != row.vcpu.domain) ++colour;
    row.colour = colour;
    chart.vcpus.push_back(std::move(row));
  }
  for (const auto& [pcpu, runs] : pcpus_) {
    PcpuChartRow& row = chart.pcpus.emplace_back();
    row.pcpu = pcpu;
    const std::vector<PcpuColumn> columns = ColumnsOf(runs);
    Cycles busy = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      busy += columns[i].busy;
      row.parts.push_back({static_cast<float>(columns[i].busy) / static_cast<float>(LengthOf(i)),
                           columns[i].busy > 0 ? row_of.at(columns[i].vcpu) : VcpuChart::kNoVcpu});
    }
    row.busy = static_cast<double>(busy) / static_cast<double>(options_.shown.Length());
  }
  return chart;
}

}  // namespace xenoscope::report
