#include "store/trace_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "analysis/find_figure.h"
#include "store/gather_trace.h"

namespace xenoscope::store {
namespace {

using analysis::GroupInfo;
using analysis::GroupLayout;
using analysis::MetricGroup;
using analysis::MetricRow;
using analysis::MetricUnit;
using analysis::SectionLevel;

constexpr double kMaxTotal = 0x1p62;
constexpr std::string_view kLostCycles = "lost_cycles";

constexpr GroupInfo kRunstates{"runstates", "Runstates", SectionLevel::kTrace,
                               GroupLayout::kRanked};
constexpr GroupInfo kWaitedFor{"waited_for", "While runnable, its pCPU ran", SectionLevel::kTrace,
                               GroupLayout::kRanked};
constexpr GroupInfo kExits{"exits", "Exit reasons", SectionLevel::kTrace, GroupLayout::kRanked};
constexpr GroupInfo kHypercalls{"hypercalls", "Hypercalls", SectionLevel::kTrace,
                                GroupLayout::kRanked};
constexpr GroupInfo kFindings{"findings", "Slices with findings", SectionLevel::kTrace,
                              GroupLayout::kRanked};
constexpr GroupInfo kLosses{"losses", "Losses", SectionLevel::kTrace};

constexpr std::array<std::string_view, 6> kStates = {"running", "runnable", "blocked",
                                                     "offline", "lost",     "unknown"};

// The counters that say what there is no figure of, and in which unit. Samples come first: losses
// are parts of these.
struct LossCounter {
  std::string_view name;
  MetricUnit unit = MetricUnit::kCount;
};
constexpr std::array kLossCounters = {
    LossCounter{"samples"},      LossCounter{"lost_in_buffers"},
    LossCounter{"damaged"},      LossCounter{"trace_damages"},
    LossCounter{"lost_records"}, LossCounter{kLostCycles, MetricUnit::kCycles}};

// Sums may be anyone's: a whole number of them is bounded.
uint64_t Whole(double sum) {
  return static_cast<uint64_t>(std::llround(std::clamp(sum, 0.0, kMaxTotal)));
}

// Returns the subject of a row: "web", or "web v0".
std::string SubjectOf(const VcpuKey& vcpu, bool by_vcpu) {
  return by_vcpu ? fmt::format("{} v{}", vcpu.domain, vcpu.number) : vcpu.domain;
}

// Hypercalls of PV guests have no times: 0 would say that they take none.
void LeaveOutNoTime(MetricRow& row) {
  std::erase_if(row.metrics, [&row](const analysis::Metric& metric) {
    return metric.key == "cycles" && analysis::Figure(row, "cycles") == 0;
  });
  for (MetricRow& part : row.parts) LeaveOutNoTime(part);
}

bool Wants(const std::vector<std::string>& domains, const std::string& domain) {
  return domains.empty() || std::ranges::find(domains, domain) != domains.end();
}

}  // namespace

std::vector<GroupInfo> TraceTotals::Groups() {
  return {kRunstates, kWaitedFor, kExits, kHypercalls, kFindings, kLosses};
}

void TraceTotals::Add(const Slice& slice, const Dictionary& dictionary) {
  const std::vector<VcpuKey>& vcpus = dictionary.vcpus.all();
  vcpus_.insert(vcpus_.end(), vcpus.begin() + static_cast<ptrdiff_t>(vcpus_.size()), vcpus.end());
  const SliceHead& head = slice.head;
  const double scale = static_cast<double>(clock_hz_) / static_cast<double>(head.clock_hz);
  if (std::ranges::find(hosts_, head.host) == hosts_.end()) hosts_.push_back(head.host);
  slices_ += slice.count;
  for (const Counter& counter : slice.sums.counters) {
    const bool timed = counter.name == kTracedCyclesCounter || counter.name == kLostCycles;
    counters_[counter.name] += counter.value * (timed ? scale : 1);
  }
  for (const TraceSums& row : slice.sums.trace) {
    Total& total = totals_[{row.figure, row.vcpu, row.name, row.part, row.other}];
    total.count += row.count;
    total.cycles += row.cycles * scale;
  }
}

TraceTotals::Rows TraceTotals::RowsOf(TraceFigure figure, const View& view, std::string Key::*first,
                                      std::string Key::*second) const {
  Rows rows;
  const auto add = [](const Total& total, Row& row) {
    row.total.count += total.count;
    row.total.cycles += total.cycles;
  };
  for (const auto& [key, total] : totals_) {
    if (key.figure != figure) continue;
    const VcpuKey& vcpu = vcpus_[key.vcpu.value];
    if (!Wants(view.domains, vcpu.domain)) continue;
    Row* row = &rows[SubjectOf(vcpu, view.by_vcpu)];
    add(total, *row);
    for (std::string Key::*const field : {first, second}) {
      if ((key.*field).empty()) continue;
      row = &row->parts[key.*field];
      add(total, *row);
    }
  }
  return rows;
}

MetricRow TraceTotals::MetricRowOf(const std::string& name, const Row& row, bool counted) {
  MetricRow out{name, {}, {}};
  if (counted) out.Add("count", MetricUnit::kCount, Whole(row.total.count));
  out.Add("cycles", MetricUnit::kCycles, Whole(row.total.cycles));
  std::vector<std::pair<const std::string*, const Row*>> parts;
  parts.reserve(row.parts.size());
  for (const auto& [part, sums] : row.parts) parts.emplace_back(&part, &sums);
  std::ranges::stable_sort(parts, std::ranges::greater(), [](const auto& part) {
    return std::pair(part.second->total.cycles, part.second->total.count);
  });
  out.parts.reserve(parts.size());
  for (const auto& [part, sums] : parts) out.parts.push_back(MetricRowOf(*part, *sums, counted));
  return out;
}

void TraceTotals::DescribeRunstates(const View& view, analysis::Section& out) const {
  MetricGroup& group = out.AddGroup(kRunstates);
  for (const auto& [subject, row] : RowsOf(kRunstateFigure, view, &Key::name, &Key::part)) {
    MetricRow& described = group.rows.emplace_back(MetricRow{subject, {}, {}});
    uint64_t waits = 0;
    for (const std::string_view state : kStates) {
      const auto found = row.parts.find(state);
      const Total total = found == row.parts.end() ? Total() : found->second.total;
      described.Add(std::string(state), MetricUnit::kCycles, Whole(total.cycles));
      if (state == "runnable") waits = Whole(total.count);
    }
    described.Add("waits", MetricUnit::kCount, waits);
  }
}

void TraceTotals::DescribeFindings(const View& view, analysis::Section& out) const {
  MetricGroup& group = out.AddGroup(kFindings);
  std::map<std::string, Total> findings;
  for (const auto& [key, total] : totals_) {
    if (key.figure != kFindingFigure || !Wants(view.domains, key.other)) continue;
    Total& sum = findings[key.other.empty() ? key.name : fmt::format("{} {}", key.name, key.other)];
    sum.count += total.count;
    sum.cycles += total.cycles;
  }
  for (const auto& [name, total] : findings) {
    group.rows.push_back(MetricRow{name, {}, {}}
                             .Add("slices", MetricUnit::kCount, Whole(total.count))
                             .Add("cycles", MetricUnit::kCycles, Whole(total.cycles)));
  }
}

uint64_t TraceTotals::CounterOf(std::string_view name) const {
  const auto found = counters_.find(name);
  return found == counters_.end() ? 0 : Whole(found->second);
}

Cycles TraceTotals::traced() const { return CounterOf(kTracedCyclesCounter); }

uint64_t TraceTotals::traced_slices() const { return CounterOf(kTracedCounter); }

uint64_t TraceTotals::hypercall_slices() const { return CounterOf(kHypercallsCounter); }

void TraceTotals::DescribeLosses(analysis::Section& out) const {
  MetricGroup& group = out.AddGroup(kLosses);
  for (const LossCounter& counter : kLossCounters) {
    const uint64_t number = CounterOf(counter.name);
    const bool timed = counter.unit == MetricUnit::kCycles;
    group.rows.push_back(MetricRow{std::string(timed ? "lost time" : counter.name), {}, {}}.Add(
        timed ? "cycles" : "count", counter.unit, number));
  }
}

analysis::Section TraceTotals::Describe(const View& view) const {
  analysis::Section out;
  DescribeRunstates(view, out);
  MetricGroup& waits = out.AddGroup(kWaitedFor);
  for (const auto& [subject, row] : RowsOf(kWaitFigure, view, &Key::other, &Key::name)) {
    waits.rows.push_back(MetricRowOf(subject, row, /*counted=*/false));
  }
  MetricGroup& exits = out.AddGroup(kExits);
  for (const auto& [subject, row] : RowsOf(kExitFigure, view, &Key::name, &Key::part)) {
    exits.rows.push_back(MetricRowOf(subject, row, /*counted=*/true));
  }
  MetricGroup& hypercalls = out.AddGroup(kHypercalls);
  for (const auto& [subject, row] : RowsOf(kHypercallFigure, view, &Key::name, &Key::part)) {
    LeaveOutNoTime(hypercalls.rows.emplace_back(MetricRowOf(subject, row, /*counted=*/true)));
  }
  DescribeFindings(view, out);
  DescribeLosses(out);
  return out;
}

}  // namespace xenoscope::store
