#include "profile/placing_pass.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "correlate/stream_late_records.h"
#include "correlate/timeline_pass.h"

namespace xenoscope::profile {

using trace::RecordOrder;

namespace {

// Gives an item that is no record to those who observe.
void ShowNonRecord(const TraceTakers& takers, const trace::Item& item) {
  if (takers.observer != nullptr) takers.observer->OnNonRecord(item);
  for (correlate::TraceObserver* each : takers.trace_observers) each->OnNonRecord(item);
}

}  // namespace

PlacingPass::PlacingPass(const TraceTakers& takers, RecordOrder order, Cycles least_grouped)
    : takers_(takers),
      order_(order),
      least_grouped_(least_grouped),
      groups_(takers.placer.timeline()) {
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<trace::Event>(i);
    Wanted& wanted = wanted_[i];
    wanted.placer = takers.placer.TakerOf(event);
    wanted.samples = takers.samples != nullptr && correlate::ExitSamples::Handles(event);
    wanted.observer = takers.observer != nullptr && takers.observer->Wants(event);
    wanted.trace_observers = correlate::WhoWants(event, takers.trace_observers);
    const bool shown = wanted.samples || wanted.observer || wanted.trace_observers != 0;
    if (shown || wanted.placer.Takes()) events_[i] = &wanted;
  }
}

[[gnu::always_inline]] inline void PlacingPass::Handler::Show(const trace::Record& record,
                                                              const Wanted& wanted) const {
  const correlate::Timeline& timeline = takers.placer.timeline();
  if (wanted.observer) takers.observer->OnRecord(record);
  correlate::ShowRecord(record, timeline, wanted.trace_observers, takers.trace_observers);
  if (wanted.samples) takers.samples->Take(record, timeline.Current(record.pcpu));
}

[[gnu::always_inline]] inline void PlacingPass::Handler::TakeRecord(const trace::Record& record,
                                                                    const Wanted& wanted) const {
  Show(record, wanted);
  if (wanted.placer.Takes()) takers.placer.TakeRecord(record, wanted.placer);
  if (wanted.samples && takers.samples->has_next()) takers.placer.PlaceDue();
}

void PlacingPass::Handler::TakeNonRecord(const trace::Item& item) const {
  ShowNonRecord(takers, item);
  takers.placer.TakeNonRecord(item);
}

void PlacingPass::DeadlineHandler::TakeRecord(const trace::Record& record,
                                              const trace::AnyTarget& /*target*/) const {
  Wanted wanted = pass.wanted_[static_cast<size_t>(record.event)];
  wanted.observer |= pass.takers_.observer != nullptr && !pass.begun_;
  pass.begun_ = true;
  Handler{pass.takers_}.Show(record, wanted);
  trace::Item item;
  item.record = record;
  pass.takers_.placer.Take(item);
}

void PlacingPass::DeadlineHandler::TakeNonRecord(const trace::Item& item) const {
  ShowNonRecord(pass.takers_, item);
  pass.takers_.placer.Take(item);
}

void PlacingPass::TakeUpTo(trace::OrderedStream& stream, Tsc through, Handler& handler) {
  if (order_ == RecordOrder::kTime) {
    stream.ForEach<false, RecordOrder::kTime>(through, events_, handler);
  } else if (order_ == RecordOrder::kCrossing || through < stream.next_tsc() + least_grouped_) {
    stream.ForEach<false, RecordOrder::kCrossing>(through, events_, handler);
  } else {
    groups_.ForEach<false>(stream, through, events_, handler);
  }
}

Tsc PlacingPass::NextLook(Tsc next, Tsc due, Tsc end) const {
  if (due == Tsc{0} || end == trace::OrderedStream::kEnd) return due;
  return std::min(due, next < end ? end : next + least_grouped_);
}

bool PlacingPass::HasAllBefore(Tsc end) const {
  const correlate::Timeline& timeline = takers_.placer.timeline();
  if (timeline.now() < end) return false;
  if (timeline.now() - end >= correlate::kMostAfterEnd) return true;
  if (takers_.placer.has_waiting()) return false;
  return takers_.placer.settled_until() >= end && !timeline.HasOpenBefore(end);
}

absl::Status PlacingPass::Run(const trace::TraceFile& trace, Tsc end) {
  trace::OrderedStream stream = trace.Stream();
  Handler handler{takers_};
  DeadlineHandler at_deadline{*this};
  correlate::StreamLateRecords late(stream, events_, handler);
  takers_.placer.SetLateRecords(order_ == RecordOrder::kTime ? nullptr : &late);
  // When samples are placed must not depend on `end`: what is estimated meanwhile would differ.
  for (Tsc due = takers_.placer.deadline();;) {
    const Tsc look = NextLook(stream.next_tsc(), due, end);
    if (look > Tsc{0}) TakeUpTo(stream, Tsc{look.value - 1}, handler);
    if (takers_.observer != nullptr) XENOSCOPE_RETURN_IF_ERROR(takers_.observer->status());
    if (stream.next_tsc() == trace::OrderedStream::kEnd) break;
    if (HasAllBefore(end)) {
      unread_from_ = stream.next_tsc();
      break;
    }
    if (look < due) continue;
    stream.ForEach<false, RecordOrder::kTime>(stream.next_tsc(), trace::kAllEvents, at_deadline);
    due = takers_.placer.deadline();
  }
  takers_.placer.SetLateRecords(nullptr);
  return absl::OkStatus();
}

}  // namespace xenoscope::profile
