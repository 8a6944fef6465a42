#include "correlate/placing/recent_timeline.h"

#include <algorithm>

#include "base/hash.h"
#include "trace/events.h"

namespace xenoscope::correlate {
namespace {

// Subreasons of exits beyond so many are not told apart: of MMIO there may be any number.
constexpr size_t kMaxSubreasons = 4096;
// A device model that has not answered after so many cycles (about 0.1 s) is not waited for.
constexpr Cycles kMaxUnsettled = Cycles{1} << 28;
constexpr double kMedianOfStays = 0.5;

}  // namespace

RecentTimeline::RecentTimeline(const PlacingOptions& options, PlacingObserver& observer,
                               CrossChecks& checks, TimelineObserver* next)
    : options_(options),
      observer_(observer),
      checks_(checks),
      next_(next),
      next_of_segments_(next != nullptr && next->WantsSegments() ? next : nullptr),
      timeline_(*this),
      threads_(options.threads),
      unsampled_switches_(observer),
      cycles_per_transition_(options.cycles_per_transition) {
  using trace::Event;
  const auto note = [this](Event event) { noted_events_.at(static_cast<size_t>(event)) = true; };
  if (!options_.of_trace) {
    for (const Event event : {Event::kHvmVmexit, Event::kHvmSvmExit, Event::kHvmNmi}) note(event);
  }
  for (const Event event : ContextSwitches::kEvents) note(event);
  if (options_.by_wakeup) {
    for (const Event event : {Event::kHvmVmentry, Event::kHvmInjVirq}) note(event);
  }
  if (!options_.by_subreason) return;
  for (const Event event : HandlerEvents()) {
    note(event);
    handler_events_.at(static_cast<size_t>(event)) = true;
  }
}

void RecentTimeline::NoteRecord(const trace::Record& record) {
  const VcpuTrack* track = timeline_.Current(record.pcpu);
  if (track == nullptr) return;
  VcpuHistory& vcpu = VcpuAt(track->index);
  if (handler_events_[static_cast<size_t>(record.event)]) NoteContents(record, *track, vcpu);
  switch (record.event) {
    case trace::Event::kHvmVmexit:
    case trace::Event::kHvmSvmExit:
      return NoteExit(*track, vcpu);
    case trace::Event::kHvmNmi:
      // On Intel the exit's reason covers all exceptions; this record says which was an NMI.
      if (!vcpu.exits.empty()) vcpu.exits.back().nmi = true;
      return;
    case trace::Event::kHvmVmentry:
      return vcpu.wakeup.OnEntry();
    case trace::Event::kHvmInjVirq:
      return vcpu.wakeup.OnInterrupt(record.payload.Word(0));
    default:  // ContextSwitches::kEvents, or one of a handler, which is none
      if (const auto found = switches_.Take(record, *track)) AddSwitch(*found);
  }
}

void RecentTimeline::TakeLossItem(const trace::Item& item) {
  counts_.unread.Count(item);
  const Tsc tsc = item.record.tsc;
  const PcpuId pcpu = item.record.pcpu;
  switch (item.kind) {
    case trace::ItemKind::kLossBegin:
      return losses_.Begin(pcpu, tsc);
    case trace::ItemKind::kPcpuEnd:
      return losses_.EndOfPcpu(pcpu, tsc);
    case trace::ItemKind::kLost:
      break;
    default:
      return;
  }
  losses_.End(pcpu, tsc);
  const TscRange lost{item.first_lost, tsc};
  counts_.lost_records += item.lost;
  counts_.lost_time += lost.Length();
  const Cycles sampled = SampledIn(lost);
  sample_rate_.AddLost(sampled);
  if (sampled > 0) observer_.OnTraced({}, {ContextKind::kLost}, {sampled});
}

void RecentTimeline::NoteExit(const VcpuTrack& track, VcpuHistory& vcpu) const {
  ExitMark& exit = vcpu.AddExit(track);
  exit.nmi = IsNmi(track.exit_reason);
  exit.context.kind = ContextKind::kExit;
  exit.context.nested = track.exit_nested;
  exit.context.reason = track.exit_reason;
  if (options_.by_waiting) exit.context.waiting = run_queues_.Now(track.pcpu);
  if (options_.by_wakeup) exit.context.wakeup = vcpu.wakeup.now();
  exit.context.thread = threads_.Now(track.ref);
}

bool RecentTimeline::IsNmi(uint32_t reason) const {
  return options_.vendor == trace::Vendor::kSvm && reason == kSvmExitNmi;
}

void RecentTimeline::NoteContents(const trace::Record& record, const VcpuTrack& track,
                                  VcpuHistory& vcpu) {
  if (!track.exit_open) return;
  if (vcpu.contents.exit != track.exit) vcpu.contents.Open(track.exit);
  vcpu.contents.Take(record);
  if (vcpu.contents.rank == 0) return;
  LimitSubreasons(vcpu.contents);
  if (vcpu.exits.empty()) return;
  vcpu.exits.back().context.exit_kind = vcpu.contents.kind;
  vcpu.exits.back().context.number = vcpu.contents.number;
}

size_t RecentTimeline::PlaceOf(const ExitContents& contents) {
  const uint64_t kind = static_cast<uint64_t>(contents.kind) << 56U;
  return MultiplyHash(contents.number + kind) >> (64 - kSubreasonBits);
}

void RecentTimeline::LimitSubreasons(ExitContents& contents) {
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << kShadowFlagsShift) - 1;
  if (contents.kind == ExitKind::kPageFault) contents.number &= kWithoutFlags;
  const std::pair subreason{contents.kind, contents.number};
  auto& recent = recent_subreasons_[PlaceOf(contents)];
  if (recent == subreason) return;
  if (subreasons_.size() < kMaxSubreasons || subreasons_.contains(subreason)) {
    subreasons_.insert(subreason);
    recent = subreason;
  } else {
    contents.kind = ExitKind::kOthers;
    contents.number = 0;
  }
}

bool RecentTimeline::IsUnsettled(const Segment& segment, const VcpuHistory& vcpu) const {
  if (!options_.by_subreason || segment.kind != SegmentKind::kExit || segment.completed)
    return false;
  // After a nested page fault the record of the access that it stopped may come.
  return vcpu.contents.exit != segment.exit || vcpu.contents.kind == ExitKind::kNoHandler ||
         vcpu.contents.kind == ExitKind::kNpf;
}

void RecentTimeline::Settle(uint32_t index) {
  VcpuHistory& vcpu = vcpus_[index];
  const bool known = vcpu.contents.exit == vcpu.unsettled.exit;
  for (UnsettledExit::Part& part : vcpu.unsettled.parts) {
    if (known) {
      part.context.exit_kind = vcpu.contents.kind;
      part.context.number = vcpu.contents.number;
      vcpu.intervals.SetSubreason(part.range.begin, vcpu.contents.kind, vcpu.contents.number);
    }
    if (part.sampled > 0) vcpu.traced.Add(part.vcpu, part.context, {part.sampled}, observer_);
  }
  vcpu.unsettled.parts.clear();
  std::erase(unsettled_, index);
  settled_until_ = now();
  for (const uint32_t each : unsettled_) {
    settled_until_ = std::min(settled_until_, vcpus_[each].unsettled.parts.front().range.begin);
  }
}

void RecentTimeline::SettleOld() {
  while (!unsettled_.empty() && now() - settled_until_ > kMaxUnsettled) {
    Settle(*std::ranges::min_element(unsettled_, {}, [this](uint32_t index) {
      return vcpus_[index].unsettled.parts.front().range.begin;
    }));
  }
}

void RecentTimeline::Finish() {
  timeline_.Finish();
  while (!unsettled_.empty()) Settle(unsettled_.back());
  for (VcpuHistory& vcpu : vcpus_) {
    vcpu.traced.Flush(vcpu.stays.Percentile(kMedianOfStays), observer_);
  }
}

void RecentTimeline::DropBefore(Tsc t, Tsc held) {
  TransitionSums transitions;
  for (VcpuHistory& vcpu : vcpus_) {
    vcpu.DropBefore(held);
    transitions.Add(vcpu.transitions);
  }
  for (const auto& track : timeline_.vcpus()) {
    if (track->kind != VcpuKind::kHvm) VcpuAt(track->index).DropBefore(t);
  }
  cycles_per_transition_ = transitions.CyclesPerStay(options_.cycles_per_transition);
  for (PcpuHistory& pcpu : pcpus_) pcpu.DropBefore(t);
  losses_.DropBefore(held);
}

const VcpuTrack* RecentTimeline::Find(VcpuRef vcpu) {
  const auto& all = timeline_.vcpus();
  for (size_t i = tracks_.size(); i < all.size(); ++i) tracks_[all[i]->ref] = all[i].get();
  const auto found = tracks_.find(vcpu);
  return found == tracks_.end() ? nullptr : found->second;
}

[[gnu::always_inline]] inline void RecentTimeline::SetContext(const VcpuHistory& vcpu,
                                                              SegmentKind kind, bool nested,
                                                              uint32_t reason, uint64_t exit,
                                                              Context& context) const {
  const Context plain = ContextOf(kind, nested, reason);
  const bool is_about = kind == SegmentKind::kExit && vcpu.contents.exit == exit;
  context.kind = plain.kind;
  context.nested = plain.nested;
  context.reason = plain.reason;
  context.exit_kind = is_about ? vcpu.contents.kind : plain.exit_kind;
  context.number = is_about ? vcpu.contents.number : plain.number;
  context.wakeup = options_.by_wakeup ? vcpu.wakeup.now() : 0;
}

[[gnu::always_inline]] inline void RecentTimeline::AddTime(const Segment& segment,
                                                           const SegmentPlace& place, TscRange part,
                                                           const Context& context) {
  const Cycles sampled = part == segment.range ? place.sampled : SampledIn(part);
  if (place.unsettled) [[unlikely]] {
    place.vcpu.unsettled.parts.push_back({part, context, segment.vcpu, segment.pcpu, sampled});
  }
  if (sampled == 0 || IsIdle(segment.vcpu)) return;
  const bool is_stay = context.kind == ContextKind::kGuest && part.begin == place.begin;
  const ContextTime time{sampled, is_stay ? uint64_t{1} : 0};
  if (!place.unsettled) place.vcpu.traced.Add(segment.vcpu, context, time, observer_);
  if (WeighsPlaces()) place.vcpu.transitions.AddTime(context.kind, time);
}

const TimelineInterval* RecentTimeline::IntervalOn(PcpuId pcpu, Tsc at) const {
  const PcpuHistory* history = HistoryOf(pcpu);
  const PcpuRun* run = history != nullptr ? history->At(at) : nullptr;
  return run != nullptr ? vcpus_[run->vcpu_index].intervals.At(at, run->first_interval) : nullptr;
}

void RecentTimeline::AddSwitch(const ContextSwitch& context_switch) {
  const auto& [range, pcpu, from, to] = context_switch;
  VcpuHistory& starting = VcpuAt(to->index);
  Context context{ContextKind::kSwitch};
  if (options_.by_waiting) context.waiting = run_queues_.Now(pcpu);
  if (options_.by_wakeup) context.wakeup = starting.wakeup.now();
  context.thread = threads_.Now(to->ref);
  TimelineInterval& interval = NewInterval(starting, to->index, to->ref, pcpu, range);
  interval.context = context;
  interval.timeslice_id = to->timeslice_id;
  interval.timeslice_begin = range.begin;
  starting.switched = range;
  starting.by_context[static_cast<size_t>(ContextKind::kSwitch)] += range.Length();
  const Cycles sampled = SampledIn(range);
  if (unsampled_switches_.IsSampled(from->ref.domain)) {
    starting.traced.Add(to->ref, context, {sampled}, observer_);
  } else {
    unsampled_switches_.Add(from->ref.domain, to->ref, context, sampled);
  }
  VcpuHistory& stopping = VcpuAt(from->index);
  if (stopping.intervals.end() > range.begin) return;  // clocks of pCPUs differ
  stopping.transitions.AddSwitch(sampled);
  TimelineInterval ending = interval;
  ending.timeslice_id = from->timeslice_id;
  stopping.intervals.Add(ending);
}

void RecentTimeline::OnState(const VcpuTrack& track, TimelineState before) {
  if (next_ != nullptr) next_->OnState(track, before);
  switches_.OnState(track, before);
  if (track.state == TimelineState::kLost) {
    VcpuAt(track.index).lost_before = losses_.LostTimeUntil(track.since);
  }
  if (options_.by_wakeup) VcpuAt(track.index).wakeup.OnState(track.state, before);
  if (options_.by_waiting) run_queues_.OnState(track);
}

void RecentTimeline::OnExit(const ExitArc& arc) {
  if (next_ != nullptr) next_->OnExit(arc);
}

void RecentTimeline::OnMark(const Mark& mark) {
  if (next_ != nullptr) next_->OnMark(mark);
}

[[gnu::always_inline]] inline void RecentTimeline::AddPart(const Segment& segment,
                                                           const SegmentPlace& place, TscRange part,
                                                           uint32_t waiting, uint32_t thread) {
  TimelineInterval& interval =
      NewInterval(place.vcpu, segment.vcpu_index, segment.vcpu, segment.pcpu, part);
  SetContext(place.vcpu, segment.kind, segment.nested, segment.reason, segment.exit,
             interval.context);
  interval.context.waiting = waiting;
  interval.context.thread = thread;
  interval.timeslice_id = segment.timeslice_id;
  interval.timeslice_begin = segment.timeslice_begin;
  AddTime(segment, place, part, interval.context);
}

void RecentTimeline::OnSegment(const Segment& segment) {
  if (next_of_segments_ != nullptr) next_of_segments_->OnSegment(segment);
  const Cycles sampled = SampledIn(segment.range);
  if (sampled > 0 && !IsIdle(segment.vcpu)) {
    const bool nmi = segment.kind == SegmentKind::kExit && segment.first && IsNmi(segment.reason);
    counts_.nmi_exits += static_cast<uint64_t>(nmi);
  }
  VcpuHistory& vcpu = VcpuAt(segment.vcpu_index);
  const TscRange range = vcpu.WithoutSwitch(segment.range);
  const bool unsettled = IsUnsettled(segment, vcpu) && !range.Empty();
  if (!vcpu.unsettled.parts.empty() && (!unsettled || vcpu.unsettled.exit != segment.exit)) {
    Settle(segment.vcpu_index);
  }
  if (range.Empty()) return;
  if (unsettled && vcpu.unsettled.parts.empty()) {
    if (unsettled_.empty() || range.begin < settled_until_) {
      settled_until_ = range.begin;
    }
    unsettled_.push_back(segment.vcpu_index);
    vcpu.unsettled.exit = segment.exit;
  }
  const ContextKind kind = ContextOf(segment.kind, segment.nested, segment.reason).kind;
  if (sampled > 0 && HasInstants(kind)) {
    checks_.AddTime(segment.vcpu_index, segment.vcpu, range, segment.timeslice_begin);
  }
  if (WeighsPlaces()) {
    vcpu.by_context[static_cast<size_t>(kind)] += range.Length();
    vcpu.lost_part.AddRunning(sampled, sample_rate_);
  }
  if (sampled > 0 && segment.kind == SegmentKind::kGuest) {
    vcpu.stays.Add(segment.range.Length(), 1);
  }
  const SegmentPlace place{vcpu, range.begin, sampled, unsettled};
  if (!DividesRanges()) [[likely]] {
    return AddPart(segment, place, range, 0, 0);
  }
  ForEachPart(segment.vcpu, segment.pcpu, range,
              [&](TscRange part, uint32_t waiting, uint32_t thread) {
                AddPart(segment, place, part, waiting, thread);
              });
  if (options_.by_waiting) run_queues_.Forget(segment.pcpu, segment.range.end);
  threads_.Forget(segment.vcpu, segment.range.end);
}

void RecentTimeline::OnRunstateInterval(const RunstateInterval& interval) {
  if (next_ != nullptr) next_->OnRunstateInterval(interval);
  VcpuHistory& vcpu = VcpuAt(interval.vcpu_index);
  if (interval.state == TimelineState::kRunnable) {
    vcpu.runnable_since = interval.range.begin;
    vcpu.was_woken = interval.cause == RunnableCause::kWake;
  }
  if (interval.state == TimelineState::kOffline) vcpu.stops.Add(interval.range.begin);
  if (interval.state == TimelineState::kRunning &&
      options_.sampled.Contains(interval.range.begin)) {
    checks_.AddTimeslice(interval.vcpu_index, interval.vcpu, interval.range.Length());
  }
  if (interval.state == TimelineState::kLost) return AddLost(vcpu, interval);
  vcpu.known += interval.range.Length();
}

void RecentTimeline::AddSample(const VcpuTrack& track, Mode mode, double in_lost) {
  VcpuHistory& vcpu = VcpuAt(track.index);
  vcpu.transitions.AddSample(mode);
  if (options_.uniform_in_time) vcpu.lost_part.AddSample(mode, in_lost, sample_rate_);
}

void RecentTimeline::AddLost(VcpuHistory& vcpu, const RunstateInterval& interval) {
  vcpu.last_exits = {};
  if (interval.range.Empty()) return;
  const Cycles unseen = losses_.LostTimeUntil(interval.range.end) - vcpu.lost_before +
                        (interval.range.end - std::max(interval.range.begin, losses_.ended()));
  vcpu.known += interval.range.Length() - std::min(interval.range.Length(), unseen);
  vcpu.intervals.Add({
      .range = interval.range,
      .context = {ContextKind::kLost},
      .vcpu = interval.vcpu,
      .pcpu = interval.pcpu,
      .timeslice_id = interval.number,
      .timeslice_begin = interval.range.begin,
  });
}

std::optional<TimelineInterval> RecentTimeline::OpenInterval(const VcpuTrack& track) const {
  TimelineInterval open{
      .range = {track.since, timeline_.now()},
      .context = {ContextKind::kLost},
      .vcpu = track.ref,
      .pcpu = track.pcpu,
      .timeslice_id = track.timeslice_id,
      .timeslice_begin = track.since,
  };
  if (track.state == TimelineState::kLost) return open;
  if (track.state != TimelineState::kRunning) return std::nullopt;
  open.range.begin = track.segment_since;
  if (track.index < vcpus_.size()) open.range = vcpus_[track.index].WithoutSwitch(open.range);
  const bool nested = track.segment == SegmentKind::kGuest ? track.guest_nested : track.exit_nested;
  open.context = ContextOf(track.segment, nested, track.exit_reason);
  if (track.index < vcpus_.size()) {
    SetContext(vcpus_[track.index], track.segment, nested, track.exit_reason, track.exit,
               open.context);
  }
  return open;
}

UnobservedTime RecentTimeline::UnobservedTimeIn(TscRange range) const {
  UnobservedTime unseen;
  losses_.ForEach(range, timeline_.now(),
                  [&unseen](TscRange part) { unseen.lost += part.Length(); });
  unseen.ended = range.end - std::max(range.begin, losses_.ended());
  return unseen;
}

bool RecentTimeline::OutsideTrace(TscRange bracket) const {
  return !trace_begin_ || bracket.end <= *trace_begin_ || bracket.begin >= timeline_.now();
}

}  // namespace xenoscope::correlate
