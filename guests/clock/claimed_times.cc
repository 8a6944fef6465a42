#include "guests/clock/claimed_times.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "correlate/timeline.h"
#include "correlate/timeline_pass.h"

namespace xenoscope::guests {
namespace {

// Returns when the reading was made, by the host's clock; nothing: no epoch of the domain's clock
// puts it where it came.
std::optional<TscRange> HostTimeOf(const CpuTimesReading& reading, const KernelClock& clock) {
  for (const ClockEpoch& epoch : clock.epochs) {
    const auto offset = static_cast<uint64_t>(epoch.offset);
    const TscRange range{Tsc{reading.entry.before - offset}, Tsc{reading.entry.after - offset}};
    const Cycles slack = epoch.ranges.empty() ? 0 : epoch.Width();
    const bool fits = range.begin <= range.end && range.begin + slack >= reading.came.begin &&
                      range.end <= reading.came.end + slack;
    if (fits) return range;
  }
  return std::nullopt;
}

constexpr double kNsOfASecond = 1e9;

// Whether the kernel claims no more time of a kind than went by. All kinds together may be more:
// Linux counts a vCPU that was woken, and waits for a pCPU, as idle and as stolen.
bool FitIn(const ClaimedTimes& times, Clock tsc) {
  const double went_by = tsc.Seconds(times.range.Length() + times.readings) * kNsOfASecond;
  const auto fits = [went_by](uint64_t claimed, uint64_t steps) {
    constexpr uint64_t kTick = 1;  // the kernel counts a tick whole
    const uint64_t error = (steps + kTick) * recording::kCpuTimesStep;
    return static_cast<double>(claimed) <= went_by + static_cast<double>(error);
  };
  return fits(times.busy, ClaimedTimes::kStepsOfBusy) &&
         fits(times.idle, ClaimedTimes::kStepsOfIdle) &&
         fits(times.steal, ClaimedTimes::kStepsOfSteal);
}

// Says what the kernel claimed between its first and its last reading; without a value: why that is
// not known.
struct Claim {
  std::optional<ClaimedTimes> times;
  const char* why = "";
};
Claim Between(const CpuTimesReadings& readings, const KernelClock& clock, Clock tsc) {
  const recording::CpuTimesEntry& first = readings.first->entry;
  const recording::CpuTimesEntry& last = readings.last.entry;
  if (first == last) return {{}, "was read only once"};
  if (readings.goes_back) return {{}, "goes back"};
  const auto begin = HostTimeOf(*readings.first, clock);
  const auto end = HostTimeOf(readings.last, clock);
  if (!begin || !end || end->begin <= begin->end) return {{}, "contradicts its clock"};
  const ClaimedTimes times{
      .vcpu = {clock.domain, VcpuId{first.cpu}},
      .range = {begin->begin, end->begin},
      .readings = begin->Length() + end->Length(),
      .busy = last.busy - first.busy,
      .idle = last.idle - first.idle + (std::max(last.iowait, first.iowait) - first.iowait),
      .steal = last.steal - first.steal};
  if (!FitIn(times, tsc)) return {{}, "is more than the time that went by"};
  return {times};
}

// Adds what vCPUs did in their ranges.
class TrueTimes final : public correlate::TimelineObserver {
 public:
  explicit TrueTimes(std::vector<ClaimedTimes>& vcpus) : vcpus_(vcpus) {
    for (size_t i = 0; i < vcpus.size(); ++i) index_[vcpus[i].vcpu] = i;
  }
  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    const auto found = index_.find(interval.vcpu);
    if (found == index_.end()) return;
    ClaimedTimes& times = vcpus_[found->second];
    const TscRange part = interval.range.Intersect(times.range);
    if (!part.Empty()) TimeIn(interval.state, times) += part.Length();
  }

 private:
  static Cycles& TimeIn(correlate::TimelineState state, ClaimedTimes& times) {
    switch (state) {
      case correlate::TimelineState::kRunning:
        return times.ran;
      case correlate::TimelineState::kRunnable:
        return times.waited;
      case correlate::TimelineState::kBlocked:
        return times.blocked;
      case correlate::TimelineState::kOffline:
        return times.offline;
      case correlate::TimelineState::kLost:
      case correlate::TimelineState::kUnknown:
        break;
    }
    return times.unknown;
  }

  std::vector<ClaimedTimes>& vcpus_;
  absl::flat_hash_map<VcpuRef, size_t> index_;
};

}  // namespace

absl::StatusOr<Claims> CompareClaims(std::span<const KernelTrace* const> traces,
                                     std::span<const KernelClock> clocks, Clock tsc,
                                     const trace::TraceFile* xen) {
  Claims claims;
  for (size_t i = 0; i < traces.size(); ++i) {
    for (const CpuTimesReadings& readings : traces[i]->cpu_times()) {
      if (!readings.first) continue;
      const Claim claim = Between(readings, clocks[i], tsc);
      if (claim.times) {
        claims.vcpus.push_back(*claim.times);
      } else {
        const VcpuRef vcpu{clocks[i].domain, VcpuId{readings.first->entry.cpu}};
        claims.left_out.push_back({vcpu, claim.why});
      }
    }
  }
  std::ranges::sort(claims.vcpus, {}, &ClaimedTimes::vcpu);
  TrueTimes times(claims.vcpus);
  correlate::Timeline timeline(times);
  if (xen != nullptr) {
    trace::OrderedStream stream = xen->Stream();
    correlate::PassToTimeline(stream, timeline);
  }
  timeline.Finish();
  for (ClaimedTimes& vcpu : claims.vcpus) {
    const Cycles known = vcpu.ran + vcpu.waited + vcpu.blocked + vcpu.offline + vcpu.unknown;
    if (known > vcpu.range.Length()) {
      return InternalError("{}: it was in states for {} cycles of {}", ToString(vcpu.vcpu), known,
                           vcpu.range.Length());
    }
    // Before the vCPU's first record, and behind the trace's end, nothing is known.
    vcpu.unknown += vcpu.range.Length() - known;
  }
  return claims;
}

}  // namespace xenoscope::guests
