#include "correlate/placing/vcpu_history.h"

#include <algorithm>
#include <cstddef>

namespace xenoscope::correlate {

HistoryQueue<ExitMark>::Iterator VcpuHistory::FirstExitSince(Tsc t) const {
  return std::partition_point(exits.begin(), exits.end(),
                              [t](const ExitMark& mark) { return mark.tsc < t; });
}

double VcpuHistory::PartOfLost(Mode mode, const SampleRate& rate) const {
  if (known == 0) return 0;
  double running = 0;
  double agreeing = 0;
  for (size_t kind = 0; kind < by_context.size(); ++kind) {
    const auto cycles = static_cast<double>(by_context[kind]);
    running += cycles;
    if (Agrees(mode, static_cast<ContextKind>(kind))) agreeing += cycles;
  }
  if (running == 0) return 0;
  const double part = lost_part.Running(std::min(1.0, running / static_cast<double>(known)), rate);
  if (agreeing == running) return part;
  // The places of a sample in the guest have the lengths of the trace, which has transitions among
  // the guest's time. Those of a sample in Xen include transitions.
  const double by_trace = agreeing / running;
  return part * (mode == Mode::kXen ? lost_part.InXen(by_trace) : by_trace);
}

std::optional<Tsc> VcpuHistory::StopWithin(const VcpuTrack& track, TscRange bracket) const {
  const auto stop = std::lower_bound(stops.begin(), stops.end(), bracket.begin);
  if (stop != stops.end() && *stop < bracket.end) return *stop;
  const bool still = track.state == TimelineState::kOffline && bracket.Contains(track.since);
  return still ? std::optional(track.since) : std::nullopt;
}

ExitMark& VcpuHistory::AddExit(const VcpuTrack& track) {
  // Where a level of guests goes on follows from where it left: exits of the other level come
  // between (AMD64 Architecture Programmer's Manual 2, 15.5 and 15.6).
  LastExit& last = last_exits.at(track.exit_nested ? 1 : 0);
  ExitMark& exit = exits.Append();
  exit = {};
  exit.tsc = track.exit_tsc;
  exit.pcpu = track.pcpu;
  exit.timeslice_id = track.timeslice_id;
  exit.timeslice_begin = track.since;
  exit.reason = track.exit_reason;
  exit.nested = track.exit_nested;
  exit.rip = track.exit_rip;
  exit.has_previous = last.known;
  exit.previous_reason = last.reason;
  exit.previous_rip = last.rip;
  last = {true, track.exit_reason, track.exit_rip};
  return exit;
}

void VcpuHistory::DropBefore(Tsc t) {
  intervals.DropBefore(t);
  exits.DropWhile([t](const ExitMark& mark) { return mark.tsc < t; });
  stops.DropWhile([t](Tsc stop) { return stop < t; });
}

Context GuestBefore(const ExitMark& exit) {
  Context context{ContextKind::kGuest, exit.context.nested};
  context.waiting = exit.context.waiting;
  context.wakeup = exit.context.wakeup;
  context.thread = exit.context.thread;
  return context;
}

}  // namespace xenoscope::correlate
