#include "guests/phases/phase_sums.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "guests/ftrace/kernel_trace.h"

namespace xenoscope::guests {

using correlate::SegmentKind;
using correlate::TimelineState;

PhaseSums::PhaseSums(DomainId domain, std::vector<PhaseCell> cells, Tsc end, size_t phases,
                     size_t parts)
    : domain_(domain), end_(end), cells_(std::move(cells)), phases_(phases), parts_(parts) {}

void PhaseSums::OnSegment(const correlate::Segment& segment) {
  if (segment.vcpu.domain != domain_) return;
  const bool in_xen = segment.kind == SegmentKind::kExit || segment.kind == SegmentKind::kResume;
  Add(segment.vcpu.vcpu, segment.range, in_xen ? PhaseState::kXen : PhaseState::kGuest,
      segment.kind == SegmentKind::kExit ? &segment : nullptr);
}

void PhaseSums::OnRunstateInterval(const correlate::RunstateInterval& interval) {
  if (interval.vcpu.domain != domain_) return;
  switch (interval.state) {
    case TimelineState::kRunnable:
      return Add(interval.vcpu.vcpu, interval.range, PhaseState::kStolen, nullptr);
    case TimelineState::kBlocked:
    case TimelineState::kOffline:
      return Add(interval.vcpu.vcpu, interval.range, PhaseState::kBlocked, nullptr);
    case TimelineState::kLost:
      return Add(interval.vcpu.vcpu, interval.range, PhaseState::kLost, nullptr);
    case TimelineState::kRunning:  // its segments came
    case TimelineState::kUnknown:
      return;
  }
}

void PhaseSums::Add(VcpuId vcpu, TscRange range, PhaseState state, const correlate::Segment* exit) {
  if (vcpu.value >= summed_.size()) {
    if (vcpu.value >= KernelTrace::kMaxCpus) return;
    summed_.resize(size_t{vcpu.value} + 1);
  }
  // A trace that contradicts itself has a vCPU in two states at a time, or before it was there.
  std::optional<Tsc>& summed = summed_[vcpu.value];
  range = range.Intersect({std::max(summed.value_or(Tsc{}), Begin()), end_});
  if (range.Empty()) return;
  summed = range.end;
  auto cell = std::prev(std::ranges::upper_bound(cells_, range.begin, {}, &PhaseCell::begin));
  bool begins = exit != nullptr && exit->first;
  for (; cell != cells_.end() && cell->begin < range.end; ++cell) {
    if (cell->vcpu.value_or(vcpu) != vcpu) continue;
    const Tsc until = std::next(cell) == cells_.end() ? end_ : std::next(cell)->begin;
    const Cycles time = range.Intersect({cell->begin, until}).Length();
    AddTo(phases_[PhaseOf(*cell)], state, time, exit, begins);
    if (cell->part != PhaseCell::kNoPart) AddTo(parts_[cell->part], state, time, exit, begins);
    begins = false;
  }
}

void PhaseSums::AddTo(Sums& sums, PhaseState state, Cycles time, const correlate::Segment* exit,
                      bool begins) {
  sums.states.at(static_cast<size_t>(state)) += time;
  if (exit == nullptr) return;
  PhaseExit& of_reason = sums.exits[{exit->nested, exit->reason}];
  of_reason.reason = exit->reason;
  of_reason.nested = exit->nested;
  of_reason.time += time;
  of_reason.exits += begins ? 1 : 0;
}

PhaseTimes PhaseSums::TimesOf(const Sums& sums, Cycles length) {
  PhaseTimes times;
  times.states = sums.states;
  const Cycles known = times.Sum();
  if (known < length) times.states[static_cast<size_t>(PhaseState::kUntraced)] = length - known;
  times.exits.reserve(sums.exits.size());
  for (const auto& [key, exit] : sums.exits) times.exits.push_back(exit);
  std::ranges::sort(times.exits, [](const PhaseExit& a, const PhaseExit& b) {
    return std::tuple(b.time, a.nested, a.reason) < std::tuple(a.time, b.nested, b.reason);
  });
  return times;
}

PhaseTimes PhaseSums::OfPhase(size_t phase, Cycles length) const {
  return TimesOf(phases_.at(phase), length);
}

PhaseTimes PhaseSums::OfPart(size_t part, Cycles length) const {
  return TimesOf(parts_.at(part), length);
}

std::vector<VcpuId> PhaseSums::Vcpus() const {
  std::vector<VcpuId> vcpus;
  for (uint32_t i = 0; i < summed_.size(); ++i) {
    if (summed_[i]) vcpus.push_back(VcpuId{i});
  }
  return vcpus;
}

}  // namespace xenoscope::guests
