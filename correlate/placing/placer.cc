#include "correlate/placing/placer.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "correlate/placing/clocked_drains.h"
#include "correlate/placing/instant.h"
#include "correlate/placing/stopped.h"
#include "correlate/placing/timed.h"
#include "trace/ordered_stream.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;

// The timeline is pruned after so many cycles at the earliest (milliseconds), or, where little is
// kept of it in any case, so many (about a second): the pass over the trace is interrupted for it.
constexpr Cycles kLeastBetween = Cycles{1} << 23;
constexpr Cycles kLeastBetweenOfTrace = Cycles{1} << 31;

}  // namespace

Placer::Placer(const PlacingOptions& options, SampleSource& samples, PlacingObserver& observer,
               TimelineObserver* timeline_observer)
    : options_(options),
      samples_(samples),
      timeline_(options, observer, checks_, timeline_observer),
      finder_(timeline_, options.logged_rip),
      outcome_(timeline_, observer, checks_),
      drain_(options, timeline_, finder_, outcome_),
      held_(std::make_unique<ClockedDrains>(timeline_)),
      virtual_interrupts_(options, timeline_, finder_, outcome_) {
  ReadBatch();
}

Placer::~Placer() = default;

void Placer::ReadBatch() {
  batch_.clear();
  if (next_ == nullptr) next_ = samples_.Next();
  if (next_ == nullptr) return;
  do {
    batch_.push_back(*next_);
    next_ = samples_.Next();
  } while (next_ != nullptr && next_->vcpu == batch_.front().vcpu &&
           next_->when == batch_.front().when);
}

Tsc Placer::deadline() const {
  if (!timeline_.begun()) return Tsc{0};
  if (batch_.empty()) return forget_at_;
  Tsc due = batch_.front().when.end;
  // What an exit in the bracket was about may be known later.
  if (timeline_.now() >= due) due = timeline_.now() + options_.settle_again;
  return std::min(forget_at_, due);
}

void Placer::Take(const trace::Item& item) {
  timeline_.Take(item);
  PlaceDue();
  if (timeline_.now() >= forget_at_) Forget();
}

void Placer::PlaceDue() {
  if (batch_.empty()) ReadBatch();
  while (!batch_.empty() && IsDue()) {
    PlaceBatch();
    ReadBatch();
  }
}

void Placer::PlaceBatch() {
  const Sample& first = batch_.front();
  outcome_.Begin(batch_.size());
  const bool domain_unknown = first.vcpu.domain >= kFirstReservedDomain;
  if (first.when.begin < forgotten_) {
    for (const Sample& sample : batch_) outcome_.Reject(sample, UnplacedReason::kOutOfOrder);
  } else if (first.timed && domain_unknown && first.pcpu) {
    for (const Sample& sample : batch_) virtual_interrupts_.Place(sample);
  } else if (first.IsInstant()) {
    for (const Sample& sample : batch_) PlaceInstant(sample, timeline_, outcome_);
  } else if (first.stopped) {
    for (const Sample& sample : batch_) PlaceStopped(sample, options_.vendor, timeline_, outcome_);
  } else if (first.timed) {
    for (const Sample& sample : batch_) PlaceTimed(sample, timeline_, finder_, outcome_);
  } else {
    PlaceDrain();
  }
}

void Placer::PlaceDrain() {
  if (const VcpuTrack* track = timeline_.Find(batch_.front().vcpu)) {
    MatchedDrain drain = drain_.Match(batch_, *track);
    // Only NMI exits of HVM guests show a clock.
    if (track->kind != VcpuKind::kHvm) return drain_.Place(drain);
    held_->Take(std::move(drain));
    return PlaceHeld(false);
  }
  for (const Sample& sample : batch_) {
    // No record names the vCPU: it can have run only while records were lost.
    if (timeline_.UnobservedTimeIn(sample.when).lost > 0) {
      outcome_.AcceptLost(sample, {}, 0);
    } else {
      outcome_.RejectUnknownVcpu(sample);
    }
  }
}

void Placer::PlaceHeld(bool at_end) {
  while (const MatchedDrain* const drain = held_->Next(at_end)) {
    drain_.Place(*drain);
    held_->Pop();
  }
}

void Placer::Forget() {
  const Tsc now = timeline_.now();
  const Cycles least = options_.of_trace ? kLeastBetweenOfTrace : kLeastBetween;
  forget_at_ = now + std::max(options_.longest_bracket / 2, least);
  const uint64_t end = (batch_.empty() ? now : batch_.front().when.end).value;
  const Tsc horizon = std::min(now, Tsc{end - std::min(end, options_.longest_bracket)});
  forgotten_ = std::max(forgotten_, horizon);
  timeline_.DropBefore(forgotten_, std::min(forgotten_, held_->begin().value_or(forgotten_)));
}

absl::Status Placer::Finish() {
  timeline_.Finish();
  if (batch_.empty()) ReadBatch();
  while (!batch_.empty()) {
    PlaceBatch();
    ReadBatch();
  }
  PlaceHeld(true);
  timeline_.FinishSamples();
  XENOSCOPE_RETURN_IF_ERROR(finder_.status());
  const SampleCounts& counts = outcome_.counts();
  if (counts.samples != counts.Attributed() + counts.Unplaced()) {
    return InternalError("{} samples, but {} placed and {} in remainders", counts.samples,
                         counts.Attributed(), counts.Unplaced());
  }
  return absl::OkStatus();
}

PlacingCounts PlaceWithoutTrace(SampleSource& samples, ThreadSource* threads,
                                PlacingObserver& observer) {
  Place nowhere{{}, {}, 1};
  RunningThreads running(threads);
  PlacingCounts counts;
  while (const Sample* sample = samples.Next()) {
    running.Advance(sample->when.end);
    running.Forget(sample->vcpu, sample->when.end);
    const bool is_timed = sample->timed || sample->IsInstant();
    nowhere.context.thread = is_timed ? running.Now(sample->vcpu) : 0;
    ++counts.samples;
    ++counts.placed[static_cast<size_t>(Placement::kUntraced)];
    observer.OnPlaced({
        .sample = sample,
        .vcpu = sample->vcpu,
        .address = sample->address,
        .placement = Placement::kUntraced,
        // A cluster of its own: which samples share a running interval is not known.
        .cluster = counts.samples,
        .places = {&nowhere, 1},
        .when = sample->when,
    });
  }
  return counts;
}

}  // namespace xenoscope::correlate
