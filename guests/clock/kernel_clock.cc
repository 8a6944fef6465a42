#include "guests/clock/kernel_clock.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "correlate/timeline.h"
#include "correlate/timeline_pass.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using correlate::OffsetRange;
using correlate::SegmentKind;
using correlate::TimelineState;

// Limits of what one domain's clock may cost. Beyond them ranges are joined, which only widens what
// is possible: a guest that answers so late that they are reached proves less.
constexpr size_t kMaxRunning = 4096;  // ranges of a vCPU in which an event may have been
constexpr size_t kMaxOffsets = 64;    // ranges of offsets

// The clock of one domain in the making, and the events that are still to bound it.
class Bounds {
 public:
  explicit Bounds(const KernelTrace& trace) {
    clock_.domain = trace.domain();
    clock_.answers = trace.clock().answers;
    clock_.bad_answers = trace.clock().bad_answers;
    if (trace.domain() == kDom0) {
      clock_.ranges = {{0, 0}};
    } else {
      clock_.ranges = {trace.clock().offset};
    }
    cpus_.reserve(trace.cpus());
    for (size_t cpu = 0; cpu < trace.cpus(); ++cpu) {
      cpus_.push_back({.cursor = CpuCursor(trace, cpu)});
      cpus_.back().has_event = cpus_.back().cursor.Next();
    }
  }

  // The vCPU's guest can have run in this range, which comes after those before.
  void AddRange(VcpuId vcpu, TscRange range) {
    if (vcpu.value >= cpus_.size()) return;
    Cpu& cpu = cpus_[vcpu.value];
    if (!cpu.begin) cpu.begin = range.begin;
    if (cpu.ranges.size() < kMaxRunning) {
      cpu.ranges.push_back(range);
    } else {
      cpu.ranges.back().end = range.end;
    }
    while (cpu.has_event && Latest(cpu) < range.end) {
      Take(cpu);
      cpu.has_event = cpu.cursor.Next();
    }
    if (!cpu.has_event) cpu.ranges.clear();
    while (!cpu.ranges.empty() && cpu.ranges.front().end < Earliest(cpu)) cpu.ranges.pop_front();
  }

  KernelClock Finish() {
    for (Cpu& cpu : cpus_) {
      for (; cpu.has_event; cpu.has_event = cpu.cursor.Next()) ++clock_.untraced;
    }
    const auto& widest = *std::ranges::max_element(clock_.ranges, {}, [](const OffsetRange& range) {
      return static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
    });
    clock_.offset = widest.min + static_cast<int64_t>((static_cast<uint64_t>(widest.max) -
                                                       static_cast<uint64_t>(widest.min)) /
                                                      2);
    for (const OffsetRange& range : clock_.ranges) {
      if (range.min <= 0 && range.max >= 0) clock_.offset = 0;
    }
    return std::move(clock_);
  }

 private:
  struct Cpu {
    CpuCursor cursor;
    correlate::RunningRanges ranges{};
    std::optional<Tsc> begin{};  // of the first range
    bool has_event = false;
  };

  // Return the first and the last time of the host at which the next event can have been written.
  [[nodiscard]] Tsc Earliest(const Cpu& cpu) const {
    return Tsc{cpu.cursor.event().tsc - static_cast<uint64_t>(clock_.ranges.back().max)};
  }
  [[nodiscard]] Tsc Latest(const Cpu& cpu) const {
    return Tsc{cpu.cursor.event().tsc - static_cast<uint64_t>(clock_.ranges.front().min)};
  }

  // Whether one range holds the event with every possible offset, so that it proves nothing.
  [[nodiscard]] bool IsWithinOne(const Cpu& cpu) const {
    const TscRange when{Earliest(cpu), Latest(cpu)};
    if (when.end < when.begin) return false;  // the host's TSC would have been negative
    const auto after = std::ranges::upper_bound(cpu.ranges, when.begin, {}, &TscRange::begin);
    return after != cpu.ranges.begin() && when.end < std::prev(after)->end;
  }

  void Take(const Cpu& cpu) {
    if (IsWithinOne(cpu)) {
      ++clock_.inside;
      return;
    }
    const OffsetRange limits{clock_.ranges.front().min, clock_.ranges.back().max};
    std::vector<OffsetRange> both = Intersection(
        clock_.ranges, AllowedOffsets(cpu.cursor.event().tsc, cpu.ranges, Tsc{0}, limits));
    if (both.empty()) {
      ++(Earliest(cpu) < *cpu.begin ? clock_.untraced : clock_.outside);
      return;
    }
    ++clock_.inside;
    if (both.size() > kMaxOffsets) {
      both[kMaxOffsets - 1].max = both.back().max;
      both.resize(kMaxOffsets);
    }
    clock_.ranges = std::move(both);
  }

  KernelClock clock_;
  std::vector<Cpu> cpus_;
};

// Tells the domains where their vCPUs can have run.
class RunningTimes final : public correlate::TimelineObserver {
 public:
  explicit RunningTimes(std::span<Bounds* const> all, std::span<const KernelTrace* const> traces) {
    for (size_t i = 0; i < all.size(); ++i) by_id_[traces[i]->domain()] = all[i];
  }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnSegment(const correlate::Segment& segment) override {
    if (segment.kind == SegmentKind::kExit || segment.kind == SegmentKind::kResume) return;
    Add(segment.vcpu, segment.range);
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    // While records are lost, the guest may have run.
    if (interval.state != TimelineState::kLost && interval.state != TimelineState::kUnknown) return;
    Add(interval.vcpu, interval.range);
  }

 private:
  void Add(VcpuRef vcpu, TscRange range) {
    const auto found = by_id_.find(vcpu.domain);
    if (found != by_id_.end()) found->second->AddRange(vcpu.vcpu, range);
  }

  absl::flat_hash_map<DomainId, Bounds*> by_id_;
};

}  // namespace

std::vector<KernelClock> FindKernelClocks(std::span<const KernelTrace* const> traces,
                                          const trace::TraceFile* xen) {
  std::vector<Bounds> bounds;
  bounds.reserve(traces.size());
  std::vector<Bounds*> all;
  for (const KernelTrace* const trace : traces) all.push_back(&bounds.emplace_back(*trace));
  const bool only_dom0 = std::ranges::all_of(
      traces, [](const KernelTrace* trace) { return trace->domain() == kDom0; });
  if (xen != nullptr && !only_dom0) {
    RunningTimes times(all, traces);
    correlate::Timeline timeline(times);
    trace::OrderedStream stream = xen->Stream();
    correlate::PassToTimeline(stream, trace::OrderedStream::kEnd, timeline);
    timeline.Finish();
  }
  std::vector<KernelClock> clocks;
  clocks.reserve(bounds.size());
  for (Bounds& each : bounds) clocks.push_back(each.Finish());
  return clocks;
}

}  // namespace xenoscope::guests
