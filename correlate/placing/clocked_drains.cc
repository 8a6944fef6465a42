#include "correlate/placing/clocked_drains.h"

#include <algorithm>
#include <cmath>

namespace xenoscope::correlate {
void ClockedDrains::Take(MatchedDrain drain) {
  latest_ = std::max(latest_, drain.samples.front().when.end);
  MatchedDrain& held = held_.emplace_back(std::move(drain));
  samples_ += held.samples.size();
  for (size_t i = 0; i < held.samples.size(); ++i) {
    const recording::Sample& sample = held.samples[i];
    Run& run = runs_[{sample.vcpu, sample.event}];
    const std::optional<ExitMark>& exit = held.nmi_exits[i];
    if (exit) {
      if (run.begin) End(run, *exit, *held.track, clocks_[sample.event]);
      run.begin = *exit;
      run.samples.clear();
      run.all_held = run.all_in_xen = true;
      run.count = 0;
    } else if (run.begin) {
      run.samples.emplace_back(&held, i);
      run.all_in_xen &= sample.mode == Mode::kXen;
      ++run.count;
    }
  }
}

const MatchedDrain* ClockedDrains::Next(bool at_end) const {
  if (held_.empty()) return nullptr;
  const MatchedDrain& oldest = held_.front();
  const bool is_old = latest_ - oldest.samples.front().when.end >= kHeld;
  const auto is_even = [](const auto& clock) { return clock.second.IsEven(); };
  const bool is_due =
      at_end || is_old || samples_ > kMaxHeld || std::ranges::none_of(clocks_, is_even);
  return is_due ? &oldest : nullptr;
}

void ClockedDrains::Pop() {
  const MatchedDrain& oldest = held_.front();
  for (const recording::Sample& sample : oldest.samples) {
    Run& run = runs_[{sample.vcpu, sample.event}];
    const bool is_held = !run.samples.empty() && run.samples.front().first == &oldest;
    if (!run.begin || (run.begin->tsc >= sample.when.end && !is_held)) continue;
    run.samples.clear();
    run.all_held = false;
  }
  samples_ -= oldest.samples.size();
  held_.pop_front();
}

std::optional<Tsc> ClockedDrains::begin() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().samples.front().when.begin;
}

void ClockedDrains::End(Run& run, const ExitMark& end, const VcpuTrack& track,
                        SamplingClock& clock) {
  if (run.begin->timeslice_id == end.timeslice_id && run.all_in_xen) {
    clock.LearnPeriod(end.tsc - run.begin->tsc, run.count);
  }
  const TscRange between{run.begin->tsc, end.tsc};
  const std::optional<size_t> periods =
      run.begin->pcpu == end.pcpu ? clock.PeriodsIn(between.Length()) : std::nullopt;
  if (periods && run.periods_before > 0) {
    clock.LearnError(run.length_before, run.periods_before, between.Length(), *periods);
  }
  run.length_before = between.Length();
  run.periods_before = periods.value_or(0);
  if (!periods || !run.all_held || !FindInstants(run, between, *periods, track, clock)) return;
  for (size_t i = 0; i < run.samples.size(); ++i) {
    const auto& [drain, index] = run.samples[i];
    const recording::Sample& sample = drain->samples[index];
    if (sample.mode != Mode::kXen) continue;
    LearnOffset(instants_[i], track, clock.offsets());
    if (!clock.offset()) continue;
    const auto error = static_cast<Cycles>(std::ceil(clock.error()));
    const Tsc at{instants_[i].value - clock.offset()->offset};
    drain->clocked[index] = {{Tsc{at.value - error}, at + error}, clock.offset()->handler};
  }
}

bool ClockedDrains::FindInstants(const Run& run, TscRange between, size_t periods,
                                 const VcpuTrack& track, const SamplingClock& clock) {
  instants_.clear();
  const Cycles offset = clock.offset() ? clock.offset()->offset : 0;
  const auto record_of = [&](size_t k) {
    return between.begin + static_cast<Cycles>(clock.InstantIn(between.Length(), periods, k));
  };
  bool is_on_pcpu = true;
  size_t k = 1;
  timeline_.HistoryOf(track).intervals.ForEach(between, [&](const TimelineInterval& interval,
                                                            TscRange part) {
    is_on_pcpu &= interval.pcpu == run.begin->pcpu && interval.context.kind != ContextKind::kLost;
    for (; k < periods; ++k) {
      const Tsc at{record_of(k).value - offset};
      if (at >= part.end) return;
      if (at >= part.begin && !IsSwitchTo(interval, track.ref)) {
        instants_.push_back(record_of(k));
      }
    }
  });
  if (!is_on_pcpu || instants_.size() != run.samples.size()) return false;
  const auto slack = static_cast<Cycles>(clock.error());
  for (size_t i = 0; i < instants_.size(); ++i) {
    const auto& [drain, index] = run.samples[i];
    const Tsc at{instants_[i].value - offset};
    const TscRange about{Tsc{at.value - slack}, at + slack + 1};
    if (about.Intersect(drain->samples[index].when).Empty()) return false;
  }
  return true;
}

void ClockedDrains::LearnOffset(Tsc at, const VcpuTrack& track, NmiOffsetEstimator& offsets) {
  const TscRange before{Tsc{at.value - NmiOffsetEstimator::kLongest + 1}, at + 1};
  const TimelineInterval* last = nullptr;
  timeline_.HistoryOf(track).intervals.ForEach(
      before, [&](const TimelineInterval& interval, TscRange part) {
        const bool begins = last == nullptr || IsRecordBetween(*last, interval);
        last = &interval;
        if (begins && part.begin == interval.range.begin) offsets.AddRecord(at - part.begin);
        if (Agrees(Mode::kXen, interval.context.kind)) {
          offsets.AddInXen(at - part.end, at - part.begin);
        }
      });
}

}  // namespace xenoscope::correlate
