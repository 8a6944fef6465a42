// A chart of vCPUs over time: a row for each pCPU with the vCPU that ran there longest, and a row
// for each vCPU with its activity, in columns of equal time. vcpu_chart_svg.h draws it for a
// browser, vcpu_chart_terminal.h in a terminal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/analysis.h"
#include "analysis/document.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "report/timeline/time_bins.h"

namespace xenoscope::report {

// The row of a vCPU.
struct VcpuChartRow {
  VcpuRef vcpu;
  std::string domain;          // the domain's name
  std::vector<VcpuBin> parts;  // shares of each column's time; a column's sum is at most 1
  // The shares of the time that is shown in which the vCPU ran and in which it waited for a pCPU.
  double ran = 0;
  double waited = 0;
  uint32_t colour = 0;  // the number of the domain, from 0
};

// The row of a pCPU.
struct PcpuChartRow {
  PcpuId pcpu;
  struct Part {
    float busy = 0;  // the busy share of the column's time
    // The row of the vCPU that ran longest; VcpuChart::kNoVcpu when that vCPU has no row.
    uint32_t longest_vcpu = 0;
  };
  std::vector<Part> parts;
  double busy = 0;  // the busy share of the time that is shown
};

// The whole chart.
struct VcpuChart {
  std::string title;
  std::string subtitle;
  // The half-open range [from, to) of time that is shown, in seconds since the trace began.
  double from = 0;
  double to = 0;
  std::vector<PcpuChartRow> pcpus;
  std::vector<VcpuChartRow> vcpus;
  size_t left_out = 0;  // the number of vCPUs that ran less than these

  static constexpr uint32_t kNoVcpu = UINT32_MAX;
};

// What a chart shows.
struct VcpuChartOptions {
  TscRange shown;                // the half-open range of time that is shown; not empty
  size_t columns = 1;            // at least 1; the chart has fewer when there are fewer cycles
  std::vector<DomainId> only{};  // the domains that are shown; empty: all
  size_t max_vcpus = 0;          // the bound of vCPUs: those that ran longest; 0: no bound
  std::function<std::string(DomainId)> domain_name{};  // the name of a domain; empty when unknown
};

// Adds up what a chart shows of a trace. Memory: columns times vCPUs. The idle domain has no row.
class VcpuChartBuilder final : public analysis::Mergeable<VcpuChartBuilder> {
 public:
  explicit VcpuChartBuilder(VcpuChartOptions options);

  void Subscribe(analysis::Subscriptions& subscriptions) const override;
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override;
  void OnSegment(const correlate::Segment& segment) override;
  void StartCounting(const correlate::Timeline& timeline) override;
  void Merge(const VcpuChartBuilder& earlier);
  // A chart is no group.
  [[nodiscard]] std::vector<analysis::GroupInfo> Groups() const override { return {}; }

  // Returns the chart, without title, subtitle and times.
  [[nodiscard]] VcpuChart Build() const;

 private:
  // Sums are whole numbers of cycles, so that it does not matter where a trace is divided.
  using Activities = std::array<Cycles, kVcpuActivities>;  // by VcpuActivity
  struct OfVcpu {
    VcpuRef ref;
    std::vector<Activities> columns;  // empty when the vCPU did not appear
    // The column to which time was added last, and its number: what comes next is mostly in it.
    TscRange recent;
    size_t recent_number = 0;

    [[nodiscard]] Cycles Sum(std::initializer_list<VcpuActivity> activities) const;
    [[nodiscard]] Cycles Ran() const;
  };
  // What ran on a pCPU, by column (the upper 32 bits) and VcpuTrack::index.
  using Runs = absl::flat_hash_map<uint64_t, Cycles>;
  // A column of a pCPU.
  struct PcpuColumn {
    Cycles busy = 0;
    uint32_t vcpu = 0;  // the index of the one that ran longest; of several, the first by id
    Cycles ran = 0;     // how long it did
  };

  // Returns the cycles of a column. The last column may be shorter than the others.
  [[nodiscard]] Cycles LengthOf(size_t column) const;
  OfVcpu& VcpuAt(VcpuRef ref, uint32_t index);
  // Adds a part of the time that is shown.
  void Add(VcpuRef ref, uint32_t index, VcpuActivity activity, TscRange part);
  // Calls visit(column, cycles) for the columns that have a part of the range, which is shown.
  template <typename Visit>
  void ForEachColumn(TscRange range, Visit visit) const {
    const Tsc begin = options_.shown.begin;
    ForEachBin(range.begin - begin, range.end - begin, column_, visit);
  }
  // Returns the indices of the vCPUs that are shown, in the order of their ids.
  [[nodiscard]] std::vector<uint32_t> Choose(size_t& left_out) const;
  [[nodiscard]] VcpuChartRow RowOf(const OfVcpu& vcpu) const;
  [[nodiscard]] std::vector<PcpuColumn> ColumnsOf(const Runs& runs) const;

  VcpuChartOptions options_;
  Cycles column_;              // the length of a column
  size_t count_;               // of columns
  std::vector<OfVcpu> vcpus_;  // by VcpuTrack::index
  std::map<PcpuId, Runs> pcpus_;
};

}  // namespace xenoscope::report
