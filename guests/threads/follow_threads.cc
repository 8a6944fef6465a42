#include "guests/threads/follow_threads.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "correlate/exit_contents.h"
#include "correlate/run_queues.h"
#include "correlate/timeline.h"
#include "trace/events.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using correlate::SegmentKind;
using correlate::TimelineState;
using correlate::VcpuTrack;

// event_channel_op (xen/include/public/xen.h), and the cycles within which it wakes a vCPU.
constexpr uint32_t kEventChannelOp = 32;
constexpr Cycles kLongestSend = Cycles{1} << 17;

// Returns the state of a running vCPU; `exit` is for kExit.
VcpuState StateOf(SegmentKind segment, const HandledExit& exit) {
  if (segment == SegmentKind::kExit) return {ThreadState::kXen, exit};
  return {segment == SegmentKind::kResume ? ThreadState::kXen : ThreadState::kGuest};
}

// Returns the state of a thread on a vCPU that does not run.
ThreadState StateOf(TimelineState state) {
  switch (state) {
    case TimelineState::kRunnable:
      return ThreadState::kStolen;
    case TimelineState::kBlocked:
    case TimelineState::kOffline:
      return ThreadState::kHalted;
    case TimelineState::kLost:
      return ThreadState::kVcpuLost;
    case TimelineState::kRunning:
    case TimelineState::kUnknown:
      break;
  }
  return ThreadState::kUntraced;
}

EntryKind KindOf(correlate::MarkKind mark) {
  switch (mark) {
    case correlate::MarkKind::kHypercall:
      return EntryKind::kHypercall;
    case correlate::MarkKind::kSubcall:
      return EntryKind::kSubcall;
    case correlate::MarkKind::kTrap:
      return EntryKind::kTrap;
    case correlate::MarkKind::kPageFault:
      return EntryKind::kPageFault;
    case correlate::MarkKind::kEmulation:
      break;
  }
  return EntryKind::kEmulation;
}

// Tells the domains what their vCPUs do.
class VcpuStates final : public correlate::TimelineObserver {
 public:
  explicit VcpuStates(std::span<ThreadStates> domains) {
    for (ThreadStates& domain : domains) by_id_[domain.domain()] = &domain;
  }
  void OnSegment(const correlate::Segment& segment) override {
    Tell(segment.vcpu, segment.range,
         StateOf(segment.kind, {segment.exit, segment.nested, segment.reason}));
  }
  // A record of this pCPU is taken next, while this vCPU runs there; null: none is known.
  void SetRecord(const trace::Record& record, const VcpuTrack* current) {
    pcpu_ = record.pcpu;
    current_ = current;
  }
  void OnMark(const correlate::Mark& mark) override {
    if (mark.kind == correlate::MarkKind::kHypercall ||
        mark.kind == correlate::MarkKind::kSubcall) {
      OnHypercall(mark.pcpu, mark.vcpu, mark.number, mark.tsc);
    } else {
      CallOn(mark.pcpu) = {};
    }
    const auto found = by_id_.find(mark.vcpu.domain);
    if (found == by_id_.end()) return;
    found->second->OnEntry(mark.vcpu.vcpu.value,
                           {.kind = KindOf(mark.kind), .reason = mark.number});
  }
  // The handler of the vCPU's exit has recorded something.
  void OnHandlerRecord(const VcpuTrack& vcpu, const trace::Record& record) {
    const auto found = by_id_.find(vcpu.ref.domain);
    if (record.event == trace::Event::kHvmVmmcall && record.payload.count() > 0) {
      OnHypercall(record.pcpu, vcpu.ref, record.payload.Word(0), record.tsc);
    }
    if (found == by_id_.end() || !vcpu.exit_open) return;
    found->second->OnHandlerRecord(vcpu.ref.vcpu.value, vcpu.exit, record);
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    if (interval.state == TimelineState::kRunning) {  // its segments came
      TellWaiting(interval.pcpu, interval.vcpu, interval.range);
      return;
    }
    if (interval.state == TimelineState::kRunnable) TellUpTo(interval.pcpu, interval.range.end);
    Tell(interval.vcpu, interval.range, {StateOf(interval.state)});
  }
  void OnState(const VcpuTrack& vcpu, TimelineState before) override {
    run_queues_.OnState(vcpu);
    if (vcpu.state == TimelineState::kRunning) ToldOf(vcpu.pcpu).running = &vcpu;
    const auto found = by_id_.find(vcpu.ref.domain);
    if (found == by_id_.end()) return;
    tracks_[vcpu.ref] = &vcpu;
    if (before == TimelineState::kBlocked && vcpu.state == TimelineState::kRunnable) {
      found->second->OnVcpuWoken(vcpu.ref.vcpu.value, SenderTo(vcpu.ref, vcpu.since));
    }
  }
  // The vCPU's kernel puts another thread on it now.
  void BeforeSwitch(VcpuRef vcpu, Tsc at) {
    const auto found = tracks_.find(vcpu);
    if (found == tracks_.end() || found->second->state != TimelineState::kRunning) return;
    TellWaiting(found->second->pcpu, vcpu, {found->second->since, at});
  }
  // Notes that records of the pCPU are missing in the trace.
  void OnGap(PcpuId pcpu) { ToldOf(pcpu).is_whole = false; }
  // Notes that Xen's trace has ended.
  void End() {
    tracks_.clear();
    told_.clear();
  }
  // Returns the state of the vCPU now.
  [[nodiscard]] VcpuState Now(VcpuRef vcpu) const {
    const auto found = tracks_.find(vcpu);
    if (found == tracks_.end()) return {ThreadState::kUntraced};
    const VcpuTrack& track = *found->second;
    if (track.state != TimelineState::kRunning) return {StateOf(track.state)};
    return StateOf(track.segment, {track.exit, track.exit_nested, track.exit_reason});
  }

 private:
  // The last hypercall that began on a pCPU.
  struct Call {
    VcpuRef by;
    Tsc at;
    bool is_send = false;  // it may have sent an event
  };
  Call& CallOn(PcpuId pcpu) {
    if (pcpu.value >= calls_.size()) calls_.resize(size_t{pcpu.value} + 1);
    return calls_[pcpu.value];
  }
  void OnHypercall(PcpuId pcpu, VcpuRef by, uint32_t number, Tsc at) {
    CallOn(pcpu) = {by, at, number == kEventChannelOp};
  }
  // Returns who sent the event by which Xen wakes the vCPU, if the record that says so comes within
  // a hypercall that may have sent it. The end of a PV guest's hypercall is not recorded.
  std::optional<EventSender> SenderTo(VcpuRef woken, Tsc at) {
    const Call& call = CallOn(pcpu_);
    if (!call.is_send || current_ == nullptr || current_->ref != call.by ||
        current_->state != TimelineState::kRunning || call.by.domain == woken.domain ||
        at < call.at || at - call.at > kLongestSend) {
      return std::nullopt;
    }
    return EventSender{ThreadOn(call.by), at};
  }

  void Tell(VcpuRef vcpu, TscRange range, const VcpuState& state) const {
    const auto found = by_id_.find(vcpu.domain);
    if (found == by_id_.end()) return;
    found->second->OnVcpuState(vcpu.vcpu.value, range.begin, range.end, state);
  }

  // Returns the thread that the vCPU's kernel has on it.
  [[nodiscard]] Culprit ThreadOn(VcpuRef vcpu) const {
    const auto found = by_id_.find(vcpu.domain);
    if (found == by_id_.end()) return {vcpu.domain};
    return {vcpu.domain, found->second->ThreadOn(vcpu.vcpu.value).value_or(Culprit::kNoThread)};
  }

  // What the vCPUs that wait for a pCPU were told.
  struct Told {
    Tsc until;              // up to here they know who ran
    bool is_whole = false;  // whether the trace has all that happened on the pCPU since then
    const VcpuTrack* running = nullptr;  // the last one that began to run there
  };
  Told& ToldOf(PcpuId pcpu) {
    if (pcpu.value >= told_.size()) told_.resize(size_t{pcpu.value} + 1);
    return told_[pcpu.value];
  }

  // Tells the vCPUs that waited for the pCPU meanwhile who ran there: what they were not told yet.
  void TellWaiting(PcpuId pcpu, VcpuRef ran, TscRange range) {
    Told& told = ToldOf(pcpu);
    const TscRange rest{std::max(range.begin, told.until), range.end};
    if (rest.Empty()) return;
    TellSwitch(pcpu, rest.begin);
    if (!IsIdle(ran)) TellWaiting(pcpu, rest, ThreadOn(ran));
    run_queues_.Forget(pcpu, rest.end);
    told.until = rest.end;
    told.is_whole = true;
  }
  // The same up to now, when a vCPU no longer waits for the pCPU.
  void TellUpTo(PcpuId pcpu, Tsc until) {
    const VcpuTrack* const running = ToldOf(pcpu).running;
    if (running != nullptr && running->state == TimelineState::kRunning && running->pcpu == pcpu) {
      TellWaiting(pcpu, running->ref, {running->since, until});
    } else {
      TellSwitch(pcpu, until);
    }
  }
  // Between two vCPUs Xen ran, which switched from one to the other.
  void TellSwitch(PcpuId pcpu, Tsc until) {
    Told& told = ToldOf(pcpu);
    if (!told.is_whole || until <= told.until) return;
    TellWaiting(pcpu, {told.until, until}, {kDomXen});
    told.until = until;
  }
  void TellWaiting(PcpuId pcpu, TscRange range, Culprit by) {
    run_queues_.ForEach(pcpu, range, [&](TscRange part, uint32_t set) {
      for (const VcpuRef waiting : run_queues_.sets()[set]) {
        const auto found = by_id_.find(waiting.domain);
        if (found != by_id_.end()) found->second->OnStolen(waiting.vcpu.value, part, by);
      }
    });
  }

  PcpuId pcpu_;  // of the record that is taken
  const VcpuTrack* current_ = nullptr;
  std::vector<Call> calls_;  // by pCPU
  correlate::RunQueues run_queues_;
  std::vector<Told> told_;  // by pCPU
  absl::flat_hash_map<DomainId, ThreadStates*> by_id_;
  absl::flat_hash_map<VcpuRef, const VcpuTrack*> tracks_;
};

// Takes the domains' events that come before `until`, in the order of time.
void TakeBefore(std::span<ThreadStates> domains, Tsc until, VcpuStates& vcpus) {
  while (true) {
    const auto first = std::ranges::min_element(domains, {}, &ThreadStates::next);
    if (first == domains.end() || first->next() >= until) return;
    const VcpuRef vcpu{first->domain(), VcpuId{first->next_cpu()}};
    if (first->next_is_switch()) vcpus.BeforeSwitch(vcpu, first->next());
    first->Take(vcpus.Now(vcpu));
  }
}

// By event: whether handlers of exits record it.
std::array<bool, trace::kEventCount> OfHandlers() {
  std::array<bool, trace::kEventCount> of_handlers{};
  for (const trace::Event event : correlate::HandlerEvents()) {
    of_handlers.at(static_cast<size_t>(event)) = true;
  }
  return of_handlers;
}

}  // namespace

absl::StatusOr<trace::UnreadCounts> FollowThreads(std::span<ThreadStates> domains,
                                                  const trace::TraceFile* xen) {
  trace::UnreadCounts unread;
  VcpuStates vcpus(domains);
  correlate::Timeline timeline(vcpus);
  if (xen != nullptr) {
    const std::array<bool, trace::kEventCount> of_handlers = OfHandlers();
    trace::OrderedStream stream = xen->Stream();
    while (const trace::Item* const item = stream.Next()) {
      const trace::Record& record = item->record;
      TakeBefore(domains, record.tsc, vcpus);
      if (item->kind == trace::ItemKind::kRecord &&
          of_handlers.at(static_cast<size_t>(record.event))) {
        const VcpuTrack* const vcpu = timeline.Current(record.pcpu);
        if (vcpu != nullptr) vcpus.OnHandlerRecord(*vcpu, record);
      }
      unread.Count(*item);
      if (item->kind == trace::ItemKind::kLossBegin || item->kind == trace::ItemKind::kLost ||
          item->kind == trace::ItemKind::kDamaged) {
        vcpus.OnGap(record.pcpu);
      }
      vcpus.SetRecord(record, timeline.Current(record.pcpu));
      timeline.Take(*item);
    }
  }
  timeline.Finish();
  vcpus.End();
  TakeBefore(domains, trace::OrderedStream::kEnd, vcpus);
  for (ThreadStates& domain : domains) XENOSCOPE_RETURN_IF_ERROR(domain.Finish());
  return unread;
}

}  // namespace xenoscope::guests
