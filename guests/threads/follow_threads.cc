#include "guests/threads/follow_threads.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "correlate/run_queues.h"
#include "correlate/timeline.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using correlate::SegmentKind;
using correlate::TimelineState;
using correlate::VcpuTrack;

ThreadState StateOf(SegmentKind segment) {
  const bool in_xen = segment == SegmentKind::kExit || segment == SegmentKind::kResume;
  return in_xen ? ThreadState::kXen : ThreadState::kGuest;
}

// Returns the state of a thread on a vCPU in this state; `segment` is for a running vCPU.
ThreadState StateOf(TimelineState state, SegmentKind segment) {
  switch (state) {
    case TimelineState::kRunning:
      return StateOf(segment);
    case TimelineState::kRunnable:
      return ThreadState::kStolen;
    case TimelineState::kBlocked:
    case TimelineState::kOffline:
      return ThreadState::kHalted;
    case TimelineState::kLost:
      return ThreadState::kVcpuLost;
    case TimelineState::kUnknown:
      break;
  }
  return ThreadState::kUntraced;
}

// Tells the domains what their vCPUs do.
class VcpuStates final : public correlate::TimelineObserver {
 public:
  explicit VcpuStates(std::span<ThreadStates> domains) {
    for (ThreadStates& domain : domains) by_id_[domain.domain()] = &domain;
  }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  void OnSegment(const correlate::Segment& segment) override {
    Tell(segment.vcpu, segment.range, StateOf(segment.kind));
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    if (interval.state == TimelineState::kRunning) {  // its segments came
      TellWaiting(interval.pcpu, interval.vcpu, interval.range);
      return;
    }
    Tell(interval.vcpu, interval.range, StateOf(interval.state, SegmentKind::kUndivided));
  }
  void OnState(const VcpuTrack& vcpu, TimelineState /*before*/) override {
    run_queues_.OnState(vcpu);
    if (by_id_.contains(vcpu.ref.domain)) tracks_[vcpu.ref] = &vcpu;
  }
  // The vCPU's kernel puts another thread on it now.
  void BeforeSwitch(VcpuRef vcpu, Tsc at) {
    const auto found = tracks_.find(vcpu);
    if (found == tracks_.end() || found->second->state != TimelineState::kRunning) return;
    TellWaiting(found->second->pcpu, vcpu, {found->second->since, at});
  }
  // Notes that Xen's trace has ended.
  void End() { tracks_.clear(); }
  // Returns the state of the vCPU now.
  [[nodiscard]] ThreadState Now(VcpuRef vcpu) const {
    const auto found = tracks_.find(vcpu);
    if (found == tracks_.end()) return ThreadState::kUntraced;
    return StateOf(found->second->state, found->second->segment);
  }

 private:
  void Tell(VcpuRef vcpu, TscRange range, ThreadState state) const {
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

  // Tells the vCPUs that waited for the pCPU meanwhile who ran there: what they were not told yet.
  void TellWaiting(PcpuId pcpu, VcpuRef ran, TscRange range) {
    if (pcpu.value >= told_.size()) told_.resize(size_t{pcpu.value} + 1);
    const TscRange rest{std::max(range.begin, told_[pcpu.value]), range.end};
    if (rest.Empty()) return;
    const Culprit by = ThreadOn(ran);
    run_queues_.ForEach(pcpu, rest, [&](TscRange part, uint32_t set) {
      for (const VcpuRef waiting : run_queues_.sets()[set]) {
        const auto found = by_id_.find(waiting.domain);
        if (found == by_id_.end() || IsIdle(ran)) continue;
        found->second->OnStolen(waiting.vcpu.value, part, by);
      }
    });
    run_queues_.Forget(pcpu, rest.end);
    told_[pcpu.value] = rest.end;
  }

  correlate::RunQueues run_queues_;
  std::vector<Tsc> told_;  // by pCPU: those that wait were told up to here
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

}  // namespace

absl::Status FollowThreads(std::span<ThreadStates> domains, const trace::TraceFile* xen) {
  VcpuStates vcpus(domains);
  correlate::Timeline timeline(vcpus);
  if (xen != nullptr) {
    trace::OrderedStream stream = xen->Stream();
    while (const trace::Item* const item = stream.Next()) {
      TakeBefore(domains, item->record.tsc, vcpus);
      timeline.Take(*item);
    }
  }
  timeline.Finish();
  vcpus.End();
  TakeBefore(domains, trace::OrderedStream::kEnd, vcpus);
  for (ThreadStates& domain : domains) XENOSCOPE_RETURN_IF_ERROR(domain.Finish());
  return absl::OkStatus();
}

}  // namespace xenoscope::guests
