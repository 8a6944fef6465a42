#include "correlate/timeline.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

using trace::Event;
using trace::Item;
using trace::ItemKind;
using trace::Record;

TimelineState FromTrace(trace::Runstate state) {
  switch (state) {
    case trace::Runstate::kRunning:
      return TimelineState::kRunning;
    case trace::Runstate::kRunnable:
      return TimelineState::kRunnable;
    case trace::Runstate::kBlocked:
      return TimelineState::kBlocked;
    case trace::Runstate::kOffline:
      return TimelineState::kOffline;
  }
  return TimelineState::kUnknown;
}

RunnableCause CauseOf(TimelineState old_state) {
  switch (old_state) {
    case TimelineState::kBlocked:
    case TimelineState::kOffline:  // paused, or being moved
      return RunnableCause::kWake;
    case TimelineState::kRunning:
      return RunnableCause::kPreempt;
    default:
      return RunnableCause::kOther;
  }
}

}  // namespace

VcpuTrack& Timeline::FindOrMake(VcpuRef ref, const Record& record) {
  const auto found = by_ref_.find(ref);
  if (found != by_ref_.end()) return *(Recent(ref) = found->second);
  auto made = std::make_unique<VcpuTrack>();
  made->ref = ref;
  made->index = numbers_->IndexOf(ref);
  made->first_seen = record.tsc;
  if (record.event == Event::kRunstateChange) {
    made->first_seen_state = FromTrace(trace::RunstateOld(record.id));
  }
  if (IsIdle(ref)) made->kind = VcpuKind::kIdle;
  if (made->index == kMaxVcpus) [[unlikely]] {
    if (faults_.vcpus_over_limit++ == 0) {
      faults_.first_over_limit_offset = record.offset;
      overflow_vcpu_ = std::move(made);
    }
    return *overflow_vcpu_;
  }
  by_ref_.emplace(ref, made.get());
  return *vcpus_.emplace_back(std::move(made));
}

Timeline::PcpuTrack& Timeline::Pcpu(PcpuId pcpu) {
  if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
  return pcpus_[pcpu.value];
}

void Timeline::SetCurrent(PcpuId pcpu, VcpuTrack* vcpu) {
  Pcpu(pcpu).begin.reset();
  (*currents_)[pcpu.value % trace::kMaxPcpus] = vcpu;
}

void Timeline::SetLosing(PcpuId pcpu, bool losing) {
  PcpuTrack& track = Pcpu(pcpu);
  losing_ += static_cast<uint32_t>(losing) - static_cast<uint32_t>(track.losing);
  track.losing = losing;
}

Timeline::Timeline(TimelineObserver& observer, VcpuIndex* numbers)
    : observer_(&observer),
      numbers_(numbers == nullptr ? &own_numbers_ : numbers),
      segments_(observer.WantsSegments()),
      exits_(observer.WantsExits()) {
  const auto take = [this](Event event, RecordHandler* how) {
    handlers_[static_cast<size_t>(event)] = how;
  };
  RecordHandler* const exit = [](Timeline& self, const Record& record) { self.OnVmexit(record); };
  RecordHandler* const end = [](Timeline& self, const Record& record) {
    self.OnDomainEnd(DomainId{static_cast<uint16_t>(record.payload.Word(0))}, record);
  };
  take(Event::kRunstateChange,
       [](Timeline& self, const Record& record) { self.OnRunstateChange(record); });
  take(Event::kContinueRunning,
       [](Timeline& self, const Record& record) { self.OnContinue(record); });
  take(Event::kHvmVmexit, exit);
  take(Event::kHvmSvmExit, exit);
  take(Event::kHvmVmentry, [](Timeline& self, const Record& record) { self.OnVmentry(record); });
  take(Event::kSchedDomRem, end);
  take(Event::kDom0DomRem, end);
  if (!observer.WantsMarks()) return;
  take(Event::kPvHypercall, [](Timeline& self, const Record& record) {
    self.OnPv(record, MarkKind::kHypercall, record.payload.Word(record.payload.count() - 1));
  });
  take(Event::kPvHypercallV2, [](Timeline& self, const Record& record) {
    self.OnPv(record, MarkKind::kHypercall, trace::HypercallOp(record.payload.Word(0)));
  });
  take(Event::kPvHypercallSubcall, [](Timeline& self, const Record& record) {
    self.OnPv(record, MarkKind::kSubcall, trace::HypercallOp(record.payload.Word(0)));
  });
  take(Event::kPvTrap, [](Timeline& self, const Record& record) {
    self.OnPv(record, MarkKind::kTrap,
              record.payload.Word(trace::Is64(record.id) ? 2 : 1) & 0x7fff);
  });
  take(Event::kPvPageFault,
       [](Timeline& self, const Record& record) { self.OnPv(record, MarkKind::kPageFault, 14); });
  take(Event::kPvEmulatePrivop,
       [](Timeline& self, const Record& record) { self.OnPv(record, MarkKind::kEmulation, 13); });
}

void Timeline::TakeNonRecord(const Item& item) {
  now_ = std::max(now_, item.record.tsc);
  switch (item.kind) {
    case ItemKind::kPcpuBegin:
      Pcpu(item.record.pcpu).begin = item.record.tsc;
      return;
    case ItemKind::kLossBegin:
      return OnLossBegin(item);
    case ItemKind::kLost:
      return OnLossEnd(item);
    case ItemKind::kPcpuEnd:
      return OnPcpuEnd(item);
    default:
      return;
  }
}

void Timeline::OpenSegment(VcpuTrack& vcpu, SegmentKind kind, Tsc at) {
  vcpu.segment = kind;
  vcpu.segment_since = at;
}

// Reports the segment that ends at `at`, if it has a length or is an exit that must be counted.
inline void Timeline::CloseSegment(VcpuTrack& vcpu, Tsc at, bool completed) {
  const Cycles length = at - vcpu.segment_since;
  const bool in_guest = vcpu.segment == SegmentKind::kGuest;
  (in_guest ? vcpu.in_guest : vcpu.in_hypervisor) += length;
  if (in_guest && vcpu.guest_nested) vcpu.in_nested_guest += length;
  if (segments_) ReportSegment(vcpu, at, completed);
}

void Timeline::ReportSegment(VcpuTrack& vcpu, Tsc at, bool completed) {
  Segment segment;
  segment.vcpu = vcpu.ref;
  segment.vcpu_index = vcpu.index;
  segment.pcpu = vcpu.pcpu;
  segment.range = {vcpu.segment_since, at};
  segment.kind = vcpu.segment;
  segment.timeslice_id = vcpu.timeslice_id;
  segment.timeslice_begin = vcpu.since;
  if (vcpu.segment == SegmentKind::kGuest) segment.nested = vcpu.guest_nested;
  if (vcpu.segment == SegmentKind::kExit) {
    segment.nested = vcpu.exit_nested;
    segment.completed = completed;
    segment.first = vcpu.exit_first;
    segment.reason = vcpu.exit_reason;
    segment.rip = vcpu.exit_rip;
    segment.exit = vcpu.exit;
    vcpu.exit_first = false;
  }
  if (!segment.range.Empty() || segment.first) observer_->OnSegment(segment);
}

void Timeline::ReportState(VcpuTrack& vcpu, Tsc at, Edge edge) {
  if (vcpu.state == TimelineState::kUnknown) return;
  if (edge == Edge::kComplete && at == vcpu.since) return;  // no interval
  if (!vcpu.has_run && vcpu.state != TimelineState::kLost) edge = Edge::kBeforeFirstRun;
  observer_->OnRunstateInterval({
      .vcpu = vcpu.ref,
      .vcpu_index = vcpu.index,
      .pcpu = vcpu.pcpu,
      .range = {vcpu.since, at},
      .state = vcpu.state,
      .cause = vcpu.cause,
      .edge = edge,
      .number = vcpu.timeslice_id,
      .reported_at = vcpu.reported_at,
  });
}

// Reports the state that ends at `at`.
void Timeline::CloseState(VcpuTrack& vcpu, Tsc at) {
  if (vcpu.state == TimelineState::kRunning) CloseSegment(vcpu, at, false);
  ReportState(vcpu, at, Edge::kComplete);
}

void Timeline::CloseArc(VcpuTrack& vcpu, Tsc at, bool finished) {
  if (!vcpu.arc_open) return;
  vcpu.arc_open = false;
  if (!exits_) return;
  observer_->OnExit({
      .vcpu = vcpu.ref,
      .vcpu_index = vcpu.index,
      .pcpu = vcpu.pcpu,
      .range = {vcpu.exit_tsc, at},
      .reason = vcpu.exit_reason,
      .rip = vcpu.exit_rip,
      .nested = vcpu.exit_nested,
      .finished = finished,
      .exit = vcpu.exit,
  });
}

void Timeline::Enter(VcpuTrack& vcpu, TimelineState state, RunnableCause cause, PcpuId pcpu,
                     Tsc at) {
  const TimelineState before = vcpu.state;
  if (state != TimelineState::kLost) vcpu.losses = 0;
  if (!vcpu.may_be_lost) {
    vcpu.may_be_lost = true;
    may_be_lost_.push_back(&vcpu);
  }
  if (!vcpu.alive) {
    vcpu.alive = true;
    alive_[vcpu.ref.domain].push_back(&vcpu);
  }
  vcpu.state = state;
  vcpu.cause = cause;
  vcpu.since = vcpu.reported_at = at;
  vcpu.pcpu = pcpu;
  if (state == TimelineState::kRunnable) CloseArc(vcpu, at, true);
  if (state == TimelineState::kRunning) {
    vcpu.has_run = true;
    vcpu.timeslice_id = ++timeslices_;
    const SegmentKind fresh =
        vcpu.kind == VcpuKind::kHvm ? SegmentKind::kResume : SegmentKind::kUndivided;
    OpenSegment(vcpu, vcpu.exit_open ? SegmentKind::kExit : fresh, at);
  }
  observer_->OnState(vcpu, before);
}

// Marks the vCPU as unknown from here on, until it is seen to run.
void Timeline::MarkLost(VcpuTrack& vcpu, Tsc at) {
  CloseState(vcpu, at);
  CloseArc(vcpu, at, false);
  vcpu.exit_open = false;
  Enter(vcpu, TimelineState::kLost, RunnableCause::kNone, vcpu.pcpu, at);
}

void Timeline::CountMismatch(const Record& record) {
  const std::pair at(record.tsc, record.pcpu);
  faults_.mismatches.Add(record.tsc);
  if (faults_.runstate_mismatches++ > 0 && at >= first_mismatch_) return;
  first_mismatch_ = at;
  faults_.first_mismatch_offset = record.offset;
}

void Timeline::OnRunstateChange(const Record& record) {
  VcpuTrack& vcpu = Vcpu(trace::UnpackVcpu(record.payload.Word(0)), record);
  const TimelineState old_state = FromTrace(trace::RunstateOld(record.id));
  const TimelineState new_state = FromTrace(trace::RunstateNew(record.id));
  const Tsc at = record.tsc;
  CatchUp(vcpu, record.pcpu, at);

  if (vcpu.state != old_state && vcpu.state != TimelineState::kUnknown &&
      vcpu.state != TimelineState::kLost) [[unlikely]] {
    CountMismatch(record);
    if (vcpu.state == TimelineState::kRunning && vcpu.pcpu != record.pcpu) ++faults_.ran_twice;
  }
  if (new_state != TimelineState::kRunning) {
    if (vcpu.state == TimelineState::kLost) return;
    if (vcpu.state == TimelineState::kRunning && losing_ > 0 && vcpu.kind != VcpuKind::kIdle) {
      // A pCPU whose records are being lost may run it, unseen.
      if (Current(vcpu.pcpu) == &vcpu) SetCurrent(vcpu.pcpu, nullptr);
      if (new_state == TimelineState::kRunnable) CloseArc(vcpu, at, true);
      return MarkLost(vcpu, at);
    }
  }
  if (vcpu.state == TimelineState::kRunning) {
    CloseState(vcpu, at);
    if (Current(vcpu.pcpu) == &vcpu) SetCurrent(vcpu.pcpu, nullptr);
  } else {
    CloseState(vcpu, at);
  }

  RunnableCause cause = RunnableCause::kNone;
  if (new_state == TimelineState::kRunnable) {
    cause = CauseOf(vcpu.state == TimelineState::kUnknown ? old_state : vcpu.state);
  }
  PcpuId pcpu = record.pcpu;
  if (new_state == TimelineState::kRunning) {
    VcpuTrack* before = Current(record.pcpu);
    if (before != nullptr && before != &vcpu) [[unlikely]] {
      // The change of the vCPU before is missing or comes late: it cannot still be running here.
      CloseState(*before, at);
      before->state = TimelineState::kUnknown;
      CountMismatch(record);
    }
    SetCurrent(record.pcpu, &vcpu);
  } else if (old_state != TimelineState::kRunning && vcpu.state != TimelineState::kUnknown) {
    pcpu = vcpu.pcpu;  // woken by another pCPU: it waits where it last ran
  }
  Enter(vcpu, new_state, cause, pcpu, at);
}

// TRC_SCHED_CONTINUE_RUNNING: the scheduler chose the vCPU that was running already. A new
// timeslice begins; the guest or the exit within it goes on.
void Timeline::OnContinue(const Record& record) {
  VcpuTrack& vcpu = Vcpu(trace::UnpackVcpu(record.payload.Word(0)), record);
  if (Current(record.pcpu) == &vcpu && vcpu.state == TimelineState::kRunning) {
    ReportState(vcpu, record.tsc, Edge::kComplete);
    vcpu.since = vcpu.reported_at = record.tsc;
    observer_->OnState(vcpu, TimelineState::kRunning);
    return;
  }
  CatchUp(vcpu, record.pcpu, record.tsc);
  if (vcpu.state != TimelineState::kUnknown && vcpu.state != TimelineState::kLost) {
    CountMismatch(record);
  }
  // It cannot run on two pCPUs.
  if (Current(vcpu.pcpu) == &vcpu) SetCurrent(vcpu.pcpu, nullptr);
  CloseState(vcpu, record.tsc);
  // No other vCPU has been seen to run there: this one has since the begin of the pCPU's trace.
  Tsc since = record.tsc;
  if (vcpu.state == TimelineState::kUnknown) since = Pcpu(record.pcpu).begin.value_or(since);
  SetCurrent(record.pcpu, &vcpu);
  Enter(vcpu, TimelineState::kRunning, RunnableCause::kNone, record.pcpu, since);
  vcpu.reported_at = record.tsc;
}

void Timeline::OnVmexit(const Record& record) {
  VcpuTrack* vcpu = Current(record.pcpu);
  if (vcpu == nullptr) {
    ++faults_.exits_without_vcpu;
    return;
  }
  if (vcpu->kind != VcpuKind::kHvm) {
    vcpu->kind = VcpuKind::kHvm;
    if (vcpu->segment == SegmentKind::kUndivided) vcpu->segment = SegmentKind::kResume;
  }
  if (vcpu->exit_open) ++faults_.exits_without_entry;
  // A vCPU that leaves the guest without having been seen to enter it was in the guest.
  if (vcpu->segment == SegmentKind::kResume) {
    vcpu->segment = SegmentKind::kGuest;
    vcpu->guest_nested = trace::IsNested(record.id);
  }
  CloseSegment(*vcpu, record.tsc, false);
  CloseArc(*vcpu, record.tsc, false);
  ++vcpu->exits;
  vcpu->exit_open = true;
  vcpu->arc_open = true;
  vcpu->exit_first = true;
  vcpu->exit_nested = trace::IsNested(record.id);
  vcpu->exit_reason = record.payload.Word(0);
  vcpu->exit_rip = trace::Is64(record.id) ? record.payload.Word64(1) : record.payload.Word(1);
  vcpu->exit_tsc = record.tsc;
  vcpu->exit = record.offset;
  OpenSegment(*vcpu, SegmentKind::kExit, record.tsc);
}

void Timeline::OnVmentry(const Record& record) {
  VcpuTrack* vcpu = Current(record.pcpu);
  if (vcpu == nullptr) {
    ++faults_.exits_without_vcpu;
    return;
  }
  if (vcpu->kind != VcpuKind::kHvm) {
    vcpu->kind = VcpuKind::kHvm;
    if (vcpu->segment == SegmentKind::kUndivided) vcpu->segment = SegmentKind::kResume;
  }
  CloseSegment(*vcpu, record.tsc, true);
  CloseArc(*vcpu, record.tsc, true);
  vcpu->exit_open = false;
  OpenSegment(*vcpu, SegmentKind::kGuest, record.tsc);
  vcpu->guest_nested = trace::IsNested(record.id);
  if (vcpu->entry_awaited) [[unlikely]] {
    vcpu->entry_awaited = false;
    observer_->OnEntry(*vcpu, record.tsc);
  }
}

void Timeline::OnPv(const Record& record, MarkKind kind, uint32_t number) {
  VcpuTrack* vcpu = Current(record.pcpu);
  if (vcpu == nullptr) return;
  if (vcpu->kind == VcpuKind::kUnknown) vcpu->kind = VcpuKind::kPv;
  observer_->OnMark({vcpu->ref, vcpu->index, record.pcpu, record.tsc, kind, number});
}

// From the first lost record on, neither the vCPU that runs on this pCPU is known, nor the state of
// vCPUs that do not run: the records that wake them may be lost. vCPUs that run on other pCPUs go
// on. Each loss begins a new lost interval, also for a vCPU that has not been seen since the loss
// before.
void Timeline::OnLossBegin(const Item& item) {
  if (!first_loss_) first_loss_ = item.record.tsc;
  const VcpuTrack* running = Current(item.record.pcpu);
  // What ran here ends first: others may have waited for it.
  const auto first = std::ranges::find(may_be_lost_, running);
  if (first != may_be_lost_.end()) std::iter_swap(first, may_be_lost_.begin());
  std::erase_if(may_be_lost_, [&](VcpuTrack* vcpu) {
    vcpu->may_be_lost = Lose(*vcpu, running, item.record.tsc);
    return !vcpu->may_be_lost;
  });
  SetCurrent(item.record.pcpu, nullptr);
  SetLosing(item.record.pcpu, true);
}

// Returns whether the next loss may concern the vCPU too.
bool Timeline::Lose(VcpuTrack& vcpu, const VcpuTrack* running, Tsc at) {
  if (&vcpu != running && vcpu.state == TimelineState::kRunning) return true;
  if (vcpu.state == TimelineState::kUnknown || vcpu.losses == kMaxLosses) return false;
  ++vcpu.losses;
  MarkLost(vcpu, at);
  return true;
}

// Ends what is known of the domain's vCPUs; the next domain may have the same number.
void Timeline::OnDomainEnd(DomainId domain, const Record& record) {
  const auto found = alive_.find(domain);
  if (found == alive_.end() || domain == kIdleDomain) return;
  std::vector<VcpuTrack*> ended = std::move(found->second);
  const Tsc at = record.tsc;
  alive_.erase(found);
  // Where runstates contradict each other, it matters for those that wait which one ends first.
  std::ranges::sort(ended, {}, &VcpuTrack::ref);
  for (VcpuTrack* vcpu : ended) {
    CatchUp(*vcpu, record.pcpu, at);
    if (vcpu->state == TimelineState::kRunning) CloseSegment(*vcpu, at, false);
    if (Current(vcpu->pcpu) == vcpu) SetCurrent(vcpu->pcpu, nullptr);
    ReportState(*vcpu, at, Edge::kOpenAtEnd);
    CloseArc(*vcpu, at, false);
    Enter(*vcpu, TimelineState::kUnknown, RunnableCause::kNone, vcpu->pcpu, at);
    vcpu->alive = false;
    vcpu->kind = VcpuKind::kUnknown;
    vcpu->has_run = false;
    vcpu->exit_open = false;
  }
}

// TRC_LOST_RECORDS names the vCPU that runs as the trace goes on.
void Timeline::OnLossEnd(const Item& item) {
  SetLosing(item.record.pcpu, false);
  if (!item.current) return;
  VcpuTrack& vcpu = Vcpu(*item.current, item.record);
  const Tsc at = item.record.tsc;
  CatchUp(vcpu, item.record.pcpu, at);
  if (vcpu.state == TimelineState::kRunning && Current(vcpu.pcpu) == &vcpu) {
    SetCurrent(vcpu.pcpu, nullptr);  // it has moved here unseen
  }
  CloseState(vcpu, at);
  CloseArc(vcpu, at, false);
  vcpu.exit_open = false;
  SetCurrent(item.record.pcpu, &vcpu);
  Enter(vcpu, TimelineState::kRunning, RunnableCause::kNone, item.record.pcpu, at);
  // Only its next exit or entry says whether it is in the guest.
  if (vcpu.kind == VcpuKind::kHvm) vcpu.segment = SegmentKind::kUndivided;
}

// The vCPU that runs on a pCPU whose trace has ended is not known any more.
void Timeline::OnPcpuEnd(const Item& item) {
  SetLosing(item.record.pcpu, false);
  VcpuTrack* vcpu = Current(item.record.pcpu);
  if (vcpu == nullptr) return;
  MarkLost(*vcpu, item.record.tsc);
  SetCurrent(item.record.pcpu, nullptr);
}

bool Timeline::HasOpenBefore(Tsc at) const {
  return std::ranges::any_of(vcpus_, [at](const auto& vcpu) {
    const bool in_run = vcpu->state == TimelineState::kRunning && !IsIdle(vcpu->ref);
    const bool is_lost = vcpu->state == TimelineState::kLost;
    return ((in_run || is_lost) && vcpu->since < at) || (vcpu->arc_open && vcpu->exit_tsc < at);
  });
}

void Timeline::StartCounting() {
  faults_ = {};
  for (const auto& vcpu : vcpus_) {
    vcpu->in_guest = vcpu->in_nested_guest = vcpu->in_hypervisor = 0;
    vcpu->exits = 0;
  }
  first_loss_.reset();
  counting_since_ = now_;
}

namespace {

// Adds what matters of a vCPU for what comes.
void AddState(const VcpuTrack& vcpu, StateSnapshot& out) {
  out.Add(vcpu.ref, vcpu.kind, vcpu.state, vcpu.cause, vcpu.since, vcpu.reported_at, vcpu.pcpu,
          vcpu.has_run, vcpu.exit_open, vcpu.arc_open, vcpu.may_be_lost, vcpu.alive, vcpu.losses);
  if (vcpu.exit_open || vcpu.arc_open) {
    out.Add(vcpu.exit_nested, vcpu.exit_first, vcpu.exit_reason, vcpu.exit_rip, vcpu.exit_tsc,
            vcpu.exit);
  }
  if (vcpu.state == TimelineState::kRunning && vcpu.kind == VcpuKind::kHvm) {
    out.Add(vcpu.segment, vcpu.segment_since,
            vcpu.segment == SegmentKind::kGuest && vcpu.guest_nested);
  }
}

bool HaveSameState(const VcpuTrack& a, const VcpuTrack& b) {
  StateSnapshot state_of_a;
  StateSnapshot state_of_b;
  AddState(a, state_of_a);
  AddState(b, state_of_b);
  return state_of_a == state_of_b;
}

bool IsLongRunnableIdle(const VcpuTrack& vcpu, Tsc since) {
  return IsIdle(vcpu.ref) && vcpu.state == TimelineState::kRunnable && vcpu.since < since;
}

}  // namespace

bool Timeline::MergeIdleVcpus(Timeline& later, Tsc since) {
  std::vector<std::pair<VcpuTrack*, const VcpuTrack*>> idle;  // this timeline's and the later one's
  for (const auto& vcpu : vcpus_) {
    if (!IsLongRunnableIdle(*vcpu, since)) continue;
    const auto found = later.by_ref_.find(vcpu->ref);
    const VcpuTrack* there = found == later.by_ref_.end() ? nullptr : found->second;
    if (there != nullptr && there->first_seen <= later.counting_since_) {
      if (!HaveSameState(*vcpu, *there)) return false;
      continue;
    }
    // A loss makes the vCPU lost, unless it has run before.
    if (later.first_loss_ && (there == nullptr || *later.first_loss_ <= there->first_seen))
      return false;
    if (there != nullptr && there->first_seen_state != TimelineState::kRunnable) return false;
    idle.emplace_back(vcpu.get(), there);
  }
  for (const auto& [here, there] : idle) {
    if (there == nullptr) {
      later.AdoptVcpu(*here);
    } else {
      ReportState(*here, there->first_seen, Edge::kComplete);
    }
  }
  return true;
}

void Timeline::AdoptVcpu(const VcpuTrack& vcpu) {
  VcpuTrack* own = vcpus_.emplace_back(std::make_unique<VcpuTrack>(vcpu)).get();
  by_ref_.emplace(own->ref, own);
  if (own->may_be_lost) may_be_lost_.push_back(own);
  if (own->alive) alive_[own->ref.domain].push_back(own);
}

void Timeline::SaveState(StateSnapshot& out, Tsc since) const {
  std::vector<const VcpuTrack*> by_index;
  for (const auto& vcpu : vcpus_) {
    if (IsLongRunnableIdle(*vcpu, since)) continue;
    // A vCPU of which nothing is known is like one that was never met.
    const bool known = vcpu->state != TimelineState::kUnknown || vcpu->has_run ||
                       vcpu->kind == VcpuKind::kHvm || vcpu->exit_open || vcpu->arc_open;
    if (known) by_index.push_back(vcpu.get());
  }
  std::sort(by_index.begin(), by_index.end(),
            [](const VcpuTrack* a, const VcpuTrack* b) { return a->index < b->index; });
  for (const VcpuTrack* vcpu : by_index) {
    AddState(*vcpu, out);
    const bool in_segment = vcpu->state == TimelineState::kRunning && !IsIdle(vcpu->ref);
    if (segments_ && in_segment) out.Add(vcpu->segment, vcpu->segment_since);
  }
  for (size_t pcpu = 0; pcpu < pcpus_.size(); ++pcpu) {
    const PcpuTrack& track = pcpus_[pcpu];
    const VcpuTrack* current = (*currents_)[pcpu];
    if (current != nullptr) out.Add(pcpu, current->ref);
    if (track.begin || track.losing) out.Add(pcpu, track.begin, track.losing);
  }
}

void Timeline::Finish() {
  std::vector<VcpuTrack*> by_ref;
  by_ref.reserve(vcpus_.size());
  for (const auto& vcpu : vcpus_) by_ref.push_back(vcpu.get());
  std::ranges::sort(by_ref, {}, &VcpuTrack::ref);
  for (VcpuTrack* vcpu : by_ref) {
    if (vcpu->state == TimelineState::kRunning) CloseSegment(*vcpu, now_, false);
    // The last pCPU's end is the end of all: nothing was lost there.
    const bool lost_at_end = vcpu->state == TimelineState::kLost && vcpu->since == now_;
    if (!lost_at_end) ReportState(*vcpu, now_, Edge::kOpenAtEnd);
    CloseArc(*vcpu, now_, false);
    vcpu->state = TimelineState::kUnknown;
  }
  pcpus_.clear();
  currents_->fill(nullptr);
  losing_ = 0;
}

const char* ToString(TimelineState state) {
  switch (state) {
    case TimelineState::kRunning:
      return "running";
    case TimelineState::kRunnable:
      return "runnable";
    case TimelineState::kBlocked:
      return "blocked";
    case TimelineState::kOffline:
      return "offline";
    case TimelineState::kLost:
      return "lost";
    case TimelineState::kUnknown:
      return "unknown";
  }
  return "?";
}

const char* ToString(RunnableCause cause) {
  switch (cause) {
    case RunnableCause::kNone:
      return "none";
    case RunnableCause::kWake:
      return "wake";
    case RunnableCause::kPreempt:
      return "preempt";
    case RunnableCause::kOther:
      return "other";
  }
  return "?";
}

const char* ToString(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kUndivided:
      return "whole";
    case SegmentKind::kGuest:
      return "guest";
    case SegmentKind::kExit:
      return "exit";
    case SegmentKind::kResume:
      return "resume";
  }
  return "?";
}

}  // namespace xenoscope::correlate
