#include "guests/shutdown/shutdown.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "correlate/timeline.h"
#include "guests/phases/phase_sums.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using recording::DomainChange;
using Kind = DomainChange::Kind;

// Why a domain shut down (public/sched.h, SHUTDOWN_*).
constexpr uint32_t kSuspend = 2;
Kind EndOfReason(uint32_t reason) {
  switch (reason) {
    case 0:
      return Kind::kPoweredOff;
    case 1:
      return Kind::kRebooted;
    case 3:  // crash
    case 4:  // watchdog
      return Kind::kCrashed;
    default:
      return Kind::kUnknown;
  }
}

// Finds where the trace first has a domain, where it stopped running, and where Xen removed it.
class EndFinder final : public correlate::TimelineObserver {
 public:
  explicit EndFinder(DomainId domain) : domain_(domain) {}

  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnSegment(const correlate::Segment& segment) override {
    if (segment.vcpu.domain != domain_) return;
    last_run = std::max(last_run.value_or(Tsc{}), segment.range.end);
  }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState /*before*/) override {
    if (vcpu.ref.domain == domain_ && !first_seen) first_seen = vcpu.first_seen;
  }
  // Returns whether the domain may still have records.
  bool OnRecord(const trace::Record& record) {
    const bool is_its = record.payload.Word(0) == domain_.value;
    if (record.event == trace::Event::kSchedShutdown && is_its) {
      const uint32_t reason = record.payload.Word(2);
      // One that was suspended, to be saved or migrated, is destroyed or goes on.
      if (reason != kSuspend) shut_down = {record.tsc, EndOfReason(reason)};
    }
    if (record.event == trace::Event::kDom0DomRem && is_its) removed = record.tsc;
    return !removed;
  }

  std::optional<Tsc> first_seen;
  std::optional<Tsc> last_run;
  std::optional<std::pair<Tsc, Kind>> shut_down;
  std::optional<Tsc> removed;

 private:
  DomainId domain_;
};

// Takes the trace up to the domain's end. Returns what of it could not be read.
trace::UnreadCounts Follow(const trace::TraceFile& xen, correlate::TimelineObserver& observer,
                           const std::function<bool(const trace::Record&)>& goes_on) {
  trace::UnreadCounts unread;
  correlate::Timeline timeline(observer);
  trace::OrderedStream stream = xen.Stream();
  while (const trace::Item* const item = stream.Next()) {
    unread.Count(*item);
    timeline.Take(*item);
    if (item->kind == trace::ItemKind::kRecord && !goes_on(item->record)) break;
  }
  timeline.Finish();
  return unread;
}

// Adds the phases with their ranges.
void AddPhases(const EndFinder& trace, Shutdown& shutdown) {
  const ShutdownPhases& kernel = shutdown.kernel;
  const auto begin_phase = [&shutdown](std::string name, Tsc at) {
    if (!shutdown.phases.empty()) shutdown.phases.back().when.end = at;
    shutdown.phases.push_back({.name = std::move(name), .when = {at, at}, .times = {}});
  };
  const Tsc end = shutdown.guest_end;
  if (kernel.phases.empty()) {
    begin_phase("guest", std::min(trace.first_seen.value_or(end), end));
  } else {
    for (const ShutdownPhase& phase : kernel.phases) {
      begin_phase(phase.name, std::min(phase.begin, end));
    }
    if (!kernel.has_reboot && kernel.last_event < end) {
      begin_phase("after last event", kernel.last_event);
    }
  }
  shutdown.phases.back().when.end = end;
  if (!trace.removed) return;
  begin_phase("destroy", end);
  shutdown.phases.back().when.end = std::max(*trace.removed, end);
  shutdown.destroyed = true;
}

absl::Status SumUp(DomainId domain, const trace::TraceFile& xen, Shutdown& shutdown) {
  std::vector<PhaseCell> cells;
  const TscRange all{shutdown.phases.front().when.begin, shutdown.phases.back().when.end};
  for (size_t i = 0; i < shutdown.phases.size(); ++i) {
    if (!shutdown.phases[i].when.Empty()) {
      cells.push_back({.begin = shutdown.phases[i].when.begin, .phase = i});
    }
  }
  if (cells.empty()) return absl::OkStatus();
  PhaseSums sums(domain, std::move(cells), all.end, shutdown.phases.size(), /*parts=*/0);
  Follow(xen, sums, [&all](const trace::Record& record) { return record.tsc <= all.end; });
  shutdown.vcpus = sums.Vcpus();
  for (size_t i = 0; i < shutdown.phases.size(); ++i) {
    Phase& phase = shutdown.phases[i];
    const Cycles length = phase.when.Length() * shutdown.vcpus.size();
    phase.times = sums.OfPhase(i, length);
    if (phase.times.Sum() != length) {
      return InternalError("{}: the times of the shutdown's phase \"{}\" are {} cycles of {}",
                           ToString(domain), phase.name, phase.times.Sum(), length);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Kind> EndOf(DomainId domain, std::span<const DomainChange> changes) {
  std::optional<Kind> end;
  for (const DomainChange& change : changes) {
    if (change.domain != domain) continue;
    const bool is_shutdown = change.kind == Kind::kPoweredOff || change.kind == Kind::kRebooted ||
                             change.kind == Kind::kCrashed;
    if (is_shutdown || (change.kind == Kind::kDestroyed && !end)) end = change.kind;
  }
  return end;
}

absl::StatusOr<Shutdown> FollowShutdown(DomainId domain, ShutdownPhases phases,
                                        std::span<const recording::DomainChange> changes,
                                        const trace::TraceFile& xen) {
  EndFinder trace(domain);
  Shutdown shutdown;
  shutdown.unread =
      Follow(xen, trace, [&trace](const trace::Record& record) { return trace.OnRecord(record); });
  const std::optional<Kind> polled = EndOf(domain, changes);
  if (!trace.last_run) {
    return NotFoundError("Xen's trace has nothing of it");
  }
  if (!trace.removed && !trace.shut_down && !polled) {
    return NotFoundError("it did not end during the recording");
  }
  shutdown.kernel = std::move(phases);
  shutdown.guest_end = *trace.last_run;
  if (trace.shut_down) {
    shutdown.how = trace.shut_down->second;
  } else {
    shutdown.how = polled.value_or(Kind::kUnknown);
  }
  AddPhases(trace, shutdown);
  XENOSCOPE_RETURN_IF_ERROR(SumUp(domain, xen, shutdown));
  return shutdown;
}

PhaseSwitches SwitchesOf(DomainId domain, const Shutdown& shutdown) {
  std::vector<correlate::ThreadSwitch> switches;
  switches.reserve((shutdown.phases.size() + 1) * shutdown.vcpus.size());
  const auto add = [&](Tsc at, size_t thread) {
    for (const VcpuId vcpu : shutdown.vcpus) {
      switches.push_back({{domain, vcpu}, at, static_cast<uint32_t>(thread)});
    }
  };
  for (size_t i = 0; i < shutdown.phases.size(); ++i) add(shutdown.phases[i].when.begin, i + 1);
  add(shutdown.phases.back().when.end, 0);
  return {shutdown.phases, std::move(switches)};
}

}  // namespace xenoscope::guests
