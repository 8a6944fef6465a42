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

// Returns the host's TSC when the guest's was `guest`, or the nearest one that there can be.
Tsc HostTime(uint64_t guest, int64_t offset) {
  const uint64_t host = guest - static_cast<uint64_t>(offset);
  if (offset > 0 && host > guest) return Tsc{};
  if (offset < 0 && host < guest) return Tsc{std::numeric_limits<uint64_t>::max()};
  return Tsc{host};
}

// One epoch in the making.
struct Epoch {
  std::vector<OffsetRange> ranges;
  TscRange set;  // the guest's TSC was set in this range of the host's
  std::vector<uint64_t> first_events;

  // Return the first and the last time of the host at which the event can have been written.
  [[nodiscard]] Tsc Earliest(uint64_t guest) const { return HostTime(guest, ranges.back().max); }
  [[nodiscard]] Tsc Latest(uint64_t guest) const { return HostTime(guest, ranges.front().min); }
};

// Returns the offset that is used.
int64_t Chosen(const std::vector<OffsetRange>& ranges) {
  const auto width = [](const OffsetRange& range) {
    return static_cast<uint64_t>(range.max) - static_cast<uint64_t>(range.min);
  };
  for (const OffsetRange& range : ranges) {
    if (range.min <= 0 && range.max >= 0) return 0;
  }
  const OffsetRange& widest = *std::ranges::max_element(ranges, {}, width);
  return widest.min + static_cast<int64_t>(width(widest) / 2);
}

// The clock of one domain in the making, and the events that are still to bound it.
class Bounds {
 public:
  explicit Bounds(const KernelTrace& trace) {
    clock_.domain = trace.domain();
    clock_.answers = trace.clock().answers;
    clock_.bad_answers = trace.clock().bad_answers;
    Tsc set_after;
    for (const AnsweredEpoch& epoch : trace.clock().epochs) {
      epochs_.push_back({.ranges = {epoch.offset},
                         .set = {set_after, epochs_.empty() ? Tsc{} : epoch.set_before},
                         .first_events = {}});
      set_after = epoch.set_after;
    }
    if (epochs_.empty() || trace.domain() == kDom0) {
      const OffsetRange own = trace.domain() == kDom0 ? OffsetRange{0, 0} : AnsweredEpoch().offset;
      epochs_ = {{.ranges = {own}, .set = {}, .first_events = {}}};
    }
    for (Epoch& epoch : epochs_) epoch.first_events.assign(trace.cpus(), kNever);
    cpus_.reserve(trace.cpus());
    for (size_t cpu = 0; cpu < trace.cpus(); ++cpu) {
      cpus_.push_back({.cursor = CpuCursor(trace, cpu)});
      BeginEpochs(cpus_.back(), 0);
      Advance(cpus_.back());
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
      Advance(cpu);
    }
    if (!cpu.has_event) cpu.ranges.clear();
    while (!cpu.ranges.empty() && cpu.ranges.front().end < Earliest(cpu)) cpu.ranges.pop_front();
  }

  KernelClock Finish() {
    for (Cpu& cpu : cpus_) {
      for (; cpu.has_event; Advance(cpu)) ++clock_.untraced;
    }
    for (Epoch& epoch : epochs_) {
      const int64_t offset = Chosen(epoch.ranges);
      clock_.epochs.push_back({.ranges = std::move(epoch.ranges),
                               .offset = offset,
                               .set_before = epoch.set.end,
                               .first_events = std::move(epoch.first_events)});
    }
    return std::move(clock_);
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  struct Cpu {
    CpuCursor cursor;
    correlate::RunningRanges ranges{};
    std::optional<Tsc> begin{};  // of the first range
    bool has_event = false;
    size_t epoch = 0;  // of the next event, by what is known before it is held against ranges,
    bool may_be_next = false;  // or the one after it
  };

  // The events of the CPU, from the next one on, are of this epoch.
  void BeginEpochs(Cpu& cpu, size_t epoch) {
    const uint64_t first = cpu.cursor.events() + (cpu.cursor.events() == 0 ? 1 : 0);
    for (size_t begun = cpu.epoch + (epoch > 0 ? 1 : 0); begun <= epoch; ++begun) {
      epochs_[begun].first_events[cpu.cursor.cpu()] = first;
    }
    cpu.epoch = epoch;
  }

  // Whether the event can be of the epoch, by the times at which the TSC was set.
  [[nodiscard]] bool MayBeOf(size_t epoch, uint64_t guest) const {
    if (epoch >= epochs_.size()) return false;
    const Epoch& in = epochs_[epoch];
    return (epoch == 0 || in.Latest(guest) >= in.set.begin) &&
           (epoch + 1 == epochs_.size() || in.Earliest(guest) < epochs_[epoch + 1].set.end);
  }

  // Goes to the CPU's next event. An event that can be of no epoch is of the one before.
  void Advance(Cpu& cpu) {
    cpu.has_event = cpu.cursor.Next();
    if (!cpu.has_event || epochs_.size() == 1) return;
    const uint64_t guest = cpu.cursor.event().tsc;
    size_t epoch = cpu.epoch;
    while (epoch < epochs_.size() && !MayBeOf(epoch, guest)) ++epoch;
    if (epoch < epochs_.size() && epoch > cpu.epoch) BeginEpochs(cpu, epoch);
    cpu.may_be_next = MayBeOf(cpu.epoch + 1, guest);
  }

  [[nodiscard]] Tsc Earliest(const Cpu& cpu) const {
    const uint64_t guest = cpu.cursor.event().tsc;
    const Tsc earliest = epochs_[cpu.epoch].Earliest(guest);
    return cpu.may_be_next ? std::min(earliest, epochs_[cpu.epoch + 1].Earliest(guest)) : earliest;
  }
  [[nodiscard]] Tsc Latest(const Cpu& cpu) const {
    const uint64_t guest = cpu.cursor.event().tsc;
    const Tsc latest = epochs_[cpu.epoch].Latest(guest);
    return cpu.may_be_next ? std::max(latest, epochs_[cpu.epoch + 1].Latest(guest)) : latest;
  }

  // Whether one range holds the event with every possible offset, so that it proves nothing.
  static bool IsWithinOne(const Cpu& cpu, const Epoch& epoch) {
    const uint64_t guest = cpu.cursor.event().tsc;
    const TscRange when{epoch.Earliest(guest), epoch.Latest(guest)};
    const auto after = std::ranges::upper_bound(cpu.ranges, when.begin, {}, &TscRange::begin);
    return after != cpu.ranges.begin() && when.end < std::prev(after)->end;
  }

  // Narrows the epoch by the CPU's event. False: they contradict each other.
  static bool Narrow(const Cpu& cpu, Epoch& epoch) {
    if (IsWithinOne(cpu, epoch)) return true;
    const OffsetRange limits{epoch.ranges.front().min, epoch.ranges.back().max};
    std::vector<OffsetRange> both = Intersection(
        epoch.ranges, AllowedOffsets(cpu.cursor.event().tsc, cpu.ranges, Tsc{0}, limits));
    if (both.empty()) return false;
    if (both.size() > kMaxOffsets) {
      both[kMaxOffsets - 1].max = both.back().max;
      both.resize(kMaxOffsets);
    }
    epoch.ranges = std::move(both);
    return true;
  }

  void Take(Cpu& cpu) {
    if (Narrow(cpu, epochs_[cpu.epoch])) {
      ++clock_.inside;
    } else if (cpu.may_be_next && Narrow(cpu, epochs_[cpu.epoch + 1])) {
      BeginEpochs(cpu, cpu.epoch + 1);
      ++clock_.inside;
    } else {
      ++(Earliest(cpu) < *cpu.begin ? clock_.untraced : clock_.outside);
    }
  }

  KernelClock clock_;
  std::vector<Epoch> epochs_;
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

EventClock KernelClock::Events() const {
  EventClock clock;
  for (const ClockEpoch& epoch : epochs) clock.parts.push_back({epoch.offset, epoch.first_events});
  return clock;
}

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
    correlate::PassToTimeline(stream, timeline);
    timeline.Finish();
  }
  std::vector<KernelClock> clocks;
  clocks.reserve(bounds.size());
  for (Bounds& each : bounds) clocks.push_back(each.Finish());
  return clocks;
}

}  // namespace xenoscope::guests
