#include "guests/boot/boot.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "correlate/timeline.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using correlate::SegmentKind;
using correlate::TimelineState;

constexpr size_t kNone = ~size_t{0};
constexpr size_t kBuild = 0;
constexpr size_t kEntry = 1;

// From `begin` to the next cell, the same part, initcall and vCPU.
struct Cell {
  Tsc begin;
  uint32_t cpu = 0;
  size_t part = kEntry;
  size_t initcall = kNone;
};

// Cuts the time of the boot into cells.
std::vector<Cell> CellsOf(const BootPhases& boot) {
  enum class Change : uint8_t { kInitcallEnd, kPart, kCpu, kInitcallBegin };
  struct Mark {
    Tsc at;
    Change change;
    size_t value;
  };
  std::vector<Mark> marks;
  marks.reserve(boot.phases.size() + boot.cpus.size() + 2 * boot.initcalls.size());
  for (size_t i = 0; i < boot.phases.size(); ++i) {
    marks.push_back({boot.phases[i].begin, Change::kPart, Boot::kPartsBefore + i});
  }
  for (const BootCpu& cpu : boot.cpus) marks.push_back({cpu.at, Change::kCpu, cpu.cpu});
  for (size_t i = 0; i < boot.initcalls.size(); ++i) {
    const BootInitcall& initcall = boot.initcalls[i];
    if (!initcall.by_boot || initcall.when.Empty()) continue;
    marks.push_back({initcall.when.begin, Change::kInitcallBegin, i});
    marks.push_back({initcall.when.end, Change::kInitcallEnd, i});
  }
  std::ranges::stable_sort(marks, [](const Mark& a, const Mark& b) {
    return std::pair(a.at, a.change) < std::pair(b.at, b.change);
  });
  std::vector<Cell> cells(1);
  cells.reserve(marks.size() + 1);
  for (const Mark& mark : marks) {
    Cell cell = cells.back();
    cell.begin = mark.at;
    if (mark.change == Change::kPart) cell.part = mark.value;
    if (mark.change == Change::kCpu) cell.cpu = static_cast<uint32_t>(mark.value);
    if (mark.change == Change::kInitcallBegin) cell.initcall = mark.value;
    if (mark.change == Change::kInitcallEnd && cell.initcall == mark.value) cell.initcall = kNone;
    if (cells.back().begin == mark.at) cells.pop_back();
    cells.push_back(cell);
  }
  return cells;
}

// Sums of one part or initcall in the making.
struct Sums {
  std::array<Cycles, kBootStates> states{};
  absl::flat_hash_map<std::pair<bool, uint32_t>, BootExit> exits;  // nested, reason

  void Add(BootState state, Cycles time) { states.at(static_cast<size_t>(state)) += time; }
  void AddExit(const correlate::Segment& segment, Cycles time, bool begins) {
    BootExit& exit = exits[{segment.nested, segment.reason}];
    exit.reason = segment.reason;
    exit.nested = segment.nested;
    exit.time += time;
    exit.exits += begins ? 1 : 0;
  }
};

// Sums up what the domain's vCPUs do in the cells.
class BootSums final : public correlate::TimelineObserver {
 public:
  BootSums(DomainId domain, const BootPhases& boot)
      : domain_(domain),
        end_(boot.end),
        cells_(CellsOf(boot)),
        parts_(Boot::kPartsBefore + boot.phases.size()),
        initcalls_(boot.initcalls.size()) {}

  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnSegment(const correlate::Segment& segment) override {
    if (segment.vcpu.domain != domain_) return;
    if (segment.vcpu.vcpu.value == 0 && !first_run_) first_run_ = segment.range.begin;
    const bool in_xen = segment.kind == SegmentKind::kExit || segment.kind == SegmentKind::kResume;
    Add(segment.vcpu.vcpu, segment.range, in_xen ? BootState::kXen : BootState::kGuest,
        segment.kind == SegmentKind::kExit ? &segment : nullptr);
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    if (interval.vcpu.domain != domain_) return;
    switch (interval.state) {
      case TimelineState::kRunnable:
        return Add(interval.vcpu.vcpu, interval.range, BootState::kStolen, nullptr);
      case TimelineState::kBlocked:
      case TimelineState::kOffline:
        return Add(interval.vcpu.vcpu, interval.range, BootState::kBlocked, nullptr);
      case TimelineState::kLost:
        return Add(interval.vcpu.vcpu, interval.range, BootState::kLost, nullptr);
      case TimelineState::kRunning:  // its segments came
      case TimelineState::kUnknown:
        return;
    }
  }
  void OnState(const correlate::VcpuTrack& vcpu, TimelineState /*before*/) override {
    if (vcpu.ref.domain == domain_ && vcpu.ref.vcpu.value == 0 && !first_seen_) {
      first_seen_ = vcpu.first_seen;
    }
  }

  // The domain was created. Its number may have been another one's before.
  void OnCreated(Tsc at) {
    if (!first_seen_) created_ = at;
  }

  // Moves the sums into the result, whose parts have their ranges.
  absl::Status Finish(Boot& boot) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      BootPart& part = boot.parts[i];
      part.times = TimesOf(parts_[i], part.when.Length());
      if (part.times.Sum() != part.when.Length()) {
        return InternalError("{}: the times of the boot's part \"{}\" are {} cycles of {}",
                             ToString(domain_), part.name, part.times.Sum(), part.when.Length());
      }
    }
    boot.initcall_times.reserve(initcalls_.size());
    for (size_t i = 0; i < initcalls_.size(); ++i) {
      const BootInitcall& initcall = boot.kernel.initcalls[i];
      boot.initcall_times.push_back(
          TimesOf(initcalls_[i], initcall.by_boot ? initcall.when.Length() : 0));
    }
    return absl::OkStatus();
  }

  // Returns when the domain began, and when it first ran, at the latest at its first event.
  [[nodiscard]] Tsc Begin() const { return std::min(created_.value_or(Seen()), FirstRun()); }
  [[nodiscard]] Tsc FirstRun() const {
    return std::min(first_run_.value_or(FirstEvent()), FirstEvent());
  }

 private:
  [[nodiscard]] Tsc FirstEvent() const { return cells_.size() > 1 ? cells_[1].begin : end_; }
  [[nodiscard]] Tsc Seen() const { return first_seen_.value_or(FirstEvent()); }

  void Add(VcpuId vcpu, TscRange range, BootState state, const correlate::Segment* exit) {
    if (vcpu.value >= told_.size()) {
      if (vcpu.value >= KernelTrace::kMaxCpus) return;
      told_.resize(size_t{vcpu.value} + 1);
    }
    // A trace that contradicts itself has a vCPU in two states at a time, or before it was there.
    range = range.Intersect({std::max(told_[vcpu.value], created_.value_or(Seen())), end_});
    if (range.Empty()) return;
    told_[vcpu.value] = range.end;
    auto cell = std::prev(std::ranges::upper_bound(cells_, range.begin, {}, &Cell::begin));
    bool begins = exit != nullptr && exit->first;
    for (; cell != cells_.end() && cell->begin < range.end; ++cell) {
      if (cell->cpu != vcpu.value) continue;
      const Tsc until = std::next(cell) == cells_.end() ? end_ : std::next(cell)->begin;
      const Cycles time = range.Intersect({cell->begin, until}).Length();
      const size_t part = cell->part == kEntry && !first_run_ ? kBuild : cell->part;
      AddTo(parts_[part], state, time, exit, begins);
      if (cell->initcall != kNone) AddTo(initcalls_[cell->initcall], state, time, exit, begins);
      begins = false;
    }
  }

  static void AddTo(Sums& sums, BootState state, Cycles time, const correlate::Segment* exit,
                    bool begins) {
    sums.Add(state, time);
    if (exit != nullptr) sums.AddExit(*exit, time, begins);
  }

  static BootTimes TimesOf(const Sums& sums, Cycles length) {
    BootTimes times;
    times.states = sums.states;
    const Cycles known = times.Sum();
    if (known < length) times.states[static_cast<size_t>(BootState::kUntraced)] = length - known;
    times.exits.reserve(sums.exits.size());
    for (const auto& [key, exit] : sums.exits) times.exits.push_back(exit);
    std::ranges::sort(times.exits, [](const BootExit& a, const BootExit& b) {
      return std::tuple(b.time, a.nested, a.reason) < std::tuple(a.time, b.nested, b.reason);
    });
    return times;
  }

  DomainId domain_;
  Tsc end_;
  std::vector<Cell> cells_;
  std::vector<Sums> parts_;
  std::vector<Sums> initcalls_;
  std::vector<Tsc> told_;  // by vCPU: up to here
  std::optional<Tsc> created_;
  std::optional<Tsc> first_seen_;
  std::optional<Tsc> first_run_;
};

void AddParts(const BootSums& sums, Boot& boot) {
  const BootPhases& kernel = boot.kernel;
  const Tsc first_event = kernel.phases.front().begin;
  boot.parts.reserve(Boot::kPartsBefore + kernel.phases.size());
  boot.parts.push_back({.name = "build", .when = {sums.Begin(), sums.FirstRun()}, .times = {}});
  boot.parts.push_back({.name = "entry", .when = {sums.FirstRun(), first_event}, .times = {}});
  boot.begins_in_trace = !boot.parts[kBuild].when.Empty();
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    const Tsc end = i + 1 < kernel.phases.size() ? kernel.phases[i + 1].begin : kernel.end;
    boot.parts.push_back({.name = kernel.phases[i].name,
                          .when = {kernel.phases[i].begin, end},
                          .is_level = kernel.phases[i].is_level,
                          .times = {}});
  }
  for (const BootInitcall& initcall : kernel.initcalls) {
    if (initcall.by_boot) ++boot.parts[Boot::kPartsBefore + initcall.phase].initcalls;
  }
}

}  // namespace

Cycles BootTimes::Sum() const { return std::accumulate(states.begin(), states.end(), Cycles{0}); }

absl::StatusOr<Boot> FollowBoot(DomainId domain, BootPhases phases, const trace::TraceFile& xen) {
  BootSums sums(domain, phases);
  correlate::Timeline timeline(sums);
  trace::OrderedStream stream = xen.Stream();
  while (const trace::Item* const item = stream.Next()) {
    const trace::Record& record = item->record;
    if (item->kind == trace::ItemKind::kRecord && record.event == trace::Event::kDom0DomAdd &&
        record.payload.Word(0) == domain.value) {
      sums.OnCreated(record.tsc);
    }
    timeline.Take(*item);
    if (record.tsc > phases.end) break;
  }
  timeline.Finish();
  Boot boot;
  boot.kernel = std::move(phases);
  AddParts(sums, boot);
  XENOSCOPE_RETURN_IF_ERROR(sums.Finish(boot));
  return boot;
}

}  // namespace xenoscope::guests
