#include "correlate/placing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "trace/events.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;

// The timeline is pruned after this many cycles at the earliest (a few milliseconds).
constexpr Cycles kForgetEvery = Cycles{1} << 23;
constexpr double kWeightTolerance = 1e-6;

// In how many contexts a vCPU's cycles are summed before they are told.
constexpr size_t kTracedContexts = 32;

// More than these are not told apart: of MMIO there may be any number.
constexpr size_t kMaxSubreasons = 4096;

// A place that weighs less than this is none, where others are: a rank that is all but impossible.
constexpr double kNoWeight = 1e-6;

// Adds to the place of the same context and pCPU, or makes one. Returns its number.
size_t AddWeight(std::vector<Place>& places, const Place& place) {
  for (size_t i = 0; i < places.size(); ++i) {
    Place& known = places[i];
    if (known.context == place.context && known.pcpu == place.pcpu) {
      known.weight += place.weight;
      return i;
    }
  }
  places.push_back(place);
  return places.size() - 1;
}

// Whether samples in such intervals can have known instants: those of NMI exits, and others.
bool HasInstants(ContextKind kind) {
  return kind == ContextKind::kGuest || kind == ContextKind::kRunning;
}

// What the exit ended.
Context GuestBefore(const ExitMark& exit) {
  Context context{ContextKind::kGuest};
  context.waiting = exit.context.waiting;
  context.wakeup = exit.context.wakeup;
  return context;
}

HistoryQueue<ExitMark>::Iterator FirstSince(const HistoryQueue<ExitMark>& exits, Tsc t) {
  return std::partition_point(exits.begin(), exits.end(),
                              [t](const ExitMark& mark) { return mark.tsc < t; });
}

void AddClusterShare(std::vector<ClusterShare>& clusters, uint64_t number, Cycles length) {
  const Cycles before = clusters.empty() ? 0 : clusters.back().until;
  if (clusters.empty() || clusters.back().number != number) clusters.push_back({before, number});
  clusters.back().until += length;
}

size_t ModeIndex(const Sample& sample) { return sample.mode == Mode::kXen ? 1 : 0; }

// The cluster of a sample (method.md §5.2): the running interval that it is of, in the order of
// time. Of time that was lost nothing tells where one ends: there it is the bracket, a million of
// which are told apart between two running intervals that were seen.
uint64_t ClusterOf(uint64_t timeslice_id, ContextKind kind, TscRange when) {
  constexpr int kBracketBits = 20;
  constexpr int kBracketsApart = 10;
  constexpr uint64_t kBracketMask = (uint64_t{1} << kBracketBits) - 1;
  const uint64_t bracket = (when.begin.value >> kBracketsApart & kBracketMask) | 1;
  return timeslice_id << kBracketBits | (kind == ContextKind::kLost ? bracket : 0);
}

Place CertainPlace(const TimelineInterval& interval) {
  return {interval.context, interval.context, interval.pcpu, 1};
}

}  // namespace

const char* ToString(Placement placement) {
  switch (placement) {
    case Placement::kInstant:
      return "instant";
    case Placement::kNmiExit:
      return "twin";
    case Placement::kAtExit:
      return "at_exit";
    case Placement::kStopped:
      return "stopped";
    case Placement::kBracketed:
      return "bracketed";
    case Placement::kUntraced:
      return "untraced";
  }
  return "?";
}

const char* ToString(UnplacedReason remainder) {
  switch (remainder) {
    case UnplacedReason::kOutsideTrace:
      return "outside_trace";
    case UnplacedReason::kUnknownVcpu:
      return "unknown_vcpu";
    case UnplacedReason::kNotRunning:
      return "not_running";
    case UnplacedReason::kModeDisagrees:
      return "mode_disagrees";
    case UnplacedReason::kTraceLost:
      return "trace_lost";
    case UnplacedReason::kOutOfOrder:
      return "out_of_order";
  }
  return "?";
}

FunctionId FunctionOf(const PlacedSample& placed, Resolver& resolver) {
  if (placed.function) return *placed.function;
  const Sample& sample = *placed.sample;
  const DomainId domain = placed.vcpu.domain;
  if (sample.mode == Mode::kUser && sample.space.value != 0) {
    return resolver.ResolveInProcess(domain, sample.space, placed.address);
  }
  return resolver.Resolve(domain, sample.mode, placed.address);
}

uint64_t PlacingCounts::Attributed() const {
  return std::accumulate(placed.begin(), placed.end(), uint64_t{0});
}

uint64_t PlacingCounts::Unplaced() const {
  return std::accumulate(unplaced.begin(), unplaced.end(), uint64_t{0});
}

Placer::Placer(const PlacingOptions& options, SampleSource& samples, PlacingObserver& observer,
               TimelineObserver* timeline_observer)
    : options_(options),
      samples_(&samples),
      observer_(&observer),
      timeline_observer_(timeline_observer),
      timeline_(*this) {
  if (options_.by_subreason) {
    for (const trace::Event event : HandlerEvents()) {
      of_handlers_.at(static_cast<size_t>(event)) = true;
    }
  }
  next_ = samples_->Next();
  ReadBatch();
}

void Placer::ReadBatch() {
  batch_.clear();
  if (!next_) return;
  batch_.push_back(*next_);
  next_ = samples_->Next();
  while (next_ && next_->vcpu == batch_.front().vcpu && next_->when == batch_.front().when) {
    batch_.push_back(*next_);
    next_ = samples_->Next();
  }
}

Placer::Vcpu& Placer::VcpuAt(uint32_t index) {
  if (index >= vcpus_.size()) vcpus_.resize(index + 1);
  return vcpus_[index];
}

const VcpuTrack* Placer::Find(VcpuRef vcpu) {
  const auto& all = timeline_.vcpus();
  for (size_t i = tracks_.size(); i < all.size(); ++i) tracks_[all[i]->ref] = all[i].get();
  const auto found = tracks_.find(vcpu);
  return found == tracks_.end() ? nullptr : found->second;
}

void Placer::Take(const trace::Item& item) {
  if (!trace_begun_ && item.kind == trace::ItemKind::kRecord) {
    trace_begun_ = true;
    trace_begin_ = item.record.tsc;
  }
  if (item.kind != trace::ItemKind::kRecord) OnLossItem(item);
  timeline_.Take(item);
  if (item.kind == trace::ItemKind::kRecord) {
    if (of_handlers_[static_cast<size_t>(item.record.event)]) NoteContents(item.record);
    if (options_.by_wakeup) NoteWakeup(item.record);
    switch (item.record.event) {
      case trace::Event::kHvmVmexit:
      case trace::Event::kHvmSvmExit:
        if (const VcpuTrack* track = timeline_.Current(item.record.pcpu)) NoteExit(*track);
        break;
      case trace::Event::kHvmNmi:
        // On Intel the exit's reason covers exceptions too; this record tells.
        if (const VcpuTrack* track = timeline_.Current(item.record.pcpu)) {
          Vcpu& vcpu = VcpuAt(track->index);
          if (!vcpu.exits.empty()) vcpu.exits.back().nmi = true;
        }
        break;
      default:
        break;
    }
  }
  while (!batch_.empty() && timeline_.now() >= batch_.front().when.end) {
    PlaceBatch();
    ReadBatch();
  }
  if (timeline_.now() >= forget_at_) Forget();
}

void Placer::OnLossItem(const trace::Item& item) {
  const auto& [tsc, pcpu] = std::pair(item.record.tsc, item.record.pcpu);
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
  const Cycles sampled = lost.Intersect(options_.sampled).Length();
  if (sampled > 0) observer_->OnTraced({}, {ContextKind::kLost}, sampled);
}

void Placer::NoteExit(const VcpuTrack& track) {
  Vcpu& vcpu = VcpuAt(track.index);
  ExitMark mark;
  mark.tsc = track.exit_tsc;
  mark.pcpu = track.pcpu;
  mark.timeslice_id = track.timeslice_id;
  mark.timeslice_begin = track.since;
  mark.reason = track.exit_reason;
  mark.nested = track.exit_nested;
  mark.nmi = options_.vendor == trace::Vendor::kSvm && track.exit_reason == kSvmExitNmi;
  mark.rip = track.exit_rip;
  mark.context = {ContextKind::kExit, mark.nested, mark.reason};
  if (options_.by_waiting) mark.context.waiting = run_queues_.Now(mark.pcpu);
  if (options_.by_wakeup) mark.context.wakeup = vcpu.wakeup.now();
  mark.has_previous = vcpu.last_exit_known;
  mark.previous_reason = vcpu.last_reason;
  mark.previous_rip = vcpu.last_rip;
  vcpu.exits.Add(mark);
  vcpu.last_exit_known = true;
  vcpu.last_reason = mark.reason;
  vcpu.last_rip = mark.rip;
}

void Placer::NoteWakeup(const trace::Record& record) {
  if (record.event != trace::Event::kHvmInjVirq && record.event != trace::Event::kHvmVmentry) {
    return;
  }
  const VcpuTrack* track = timeline_.Current(record.pcpu);
  if (track == nullptr) return;
  Wakeup& wakeup = VcpuAt(track->index).wakeup;
  if (record.event == trace::Event::kHvmVmentry) {
    wakeup.OnEntry();
  } else {
    wakeup.OnInterrupt(record.payload.Word(0));
  }
}

void Placer::NoteContents(const trace::Record& record) {
  const VcpuTrack* track = timeline_.Current(record.pcpu);
  if (track == nullptr || !track->exit_open) return;
  Vcpu& vcpu = VcpuAt(track->index);
  if (vcpu.contents.exit != track->exit) vcpu.contents.Open(track->exit);
  vcpu.contents.Take(record);
  if (vcpu.contents.rank == 0) return;
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << kShadowFlagsShift) - 1;
  if (vcpu.contents.kind == ExitKind::kPageFault) vcpu.contents.number &= kWithoutFlags;
  const std::pair subreason{vcpu.contents.kind, vcpu.contents.number};
  if (subreasons_.size() < kMaxSubreasons) {
    subreasons_.insert(subreason);
  } else if (!subreasons_.contains(subreason)) {
    vcpu.contents.kind = ExitKind::kOthers;
    vcpu.contents.number = 0;
  }
  if (vcpu.exits.empty()) return;
  vcpu.exits.back().context.exit_kind = vcpu.contents.kind;
  vcpu.exits.back().context.number = vcpu.contents.number;
}

Context Placer::ContextIn(const Vcpu& vcpu, SegmentKind kind, bool nested, uint32_t reason,
                          uint64_t exit) const {
  Context context = ContextOf(kind, nested, reason);
  if (context.kind == ContextKind::kExit && vcpu.contents.exit == exit) {
    context.exit_kind = vcpu.contents.kind;
    context.number = vcpu.contents.number;
  }
  if (options_.by_wakeup) context.wakeup = vcpu.wakeup.now();
  return context;
}

void Placer::AddInterval(uint32_t index, const TimelineInterval& interval) {
  const Cycles sampled = interval.range.Intersect(options_.sampled).Length();
  Vcpu& vcpu = VcpuAt(index);
  if (sampled > 0 && !IsIdle(interval.vcpu)) AddTraced(vcpu, interval, sampled);
  vcpu.history.Add(interval);
  if (interval.pcpu.value >= pcpus_.size()) pcpus_.resize(interval.pcpu.value + 1);
  pcpus_[interval.pcpu.value].Add(interval);
}

void Placer::AddTraced(Vcpu& vcpu, const TimelineInterval& interval, Cycles cycles) {
  if (vcpu.traced.empty()) {
    vcpu.ref = interval.vcpu;
    vcpu.traced.resize(kTracedContexts);
  }
  const Context& context = interval.context;
  const uint64_t mixed = context.reason + 7 * static_cast<uint64_t>(context.kind) + context.number +
                         context.waiting + context.wakeup;
  Traced& traced = vcpu.traced[mixed % kTracedContexts];
  if (traced.context != context) {
    if (traced.cycles > 0) observer_->OnTraced(interval.vcpu, traced.context, traced.cycles);
    traced = {context, 0};
  }
  traced.cycles += cycles;
}

void Placer::OnState(const VcpuTrack& track, TimelineState before) {
  if (timeline_observer_ != nullptr) timeline_observer_->OnState(track, before);
  if (track.state == TimelineState::kLost)
    VcpuAt(track.index).lost_before = losses_.LostTimeUntil(track.since);
  if (options_.by_wakeup) VcpuAt(track.index).wakeup.OnState(track.state, before);
  if (options_.by_waiting) run_queues_.OnState(track);
}

void Placer::OnExit(const ExitArc& arc) {
  if (timeline_observer_ != nullptr) timeline_observer_->OnExit(arc);
}

void Placer::OnMark(const Mark& mark) {
  if (timeline_observer_ != nullptr) timeline_observer_->OnMark(mark);
}

void Placer::OnSegment(const Segment& segment) {
  if (timeline_observer_ != nullptr) timeline_observer_->OnSegment(segment);
  const Cycles sampled = segment.range.Intersect(options_.sampled).Length();
  if (sampled > 0 && !IsIdle(segment.vcpu)) {
    const bool nmi = segment.kind == SegmentKind::kExit && segment.first &&
                     options_.vendor == trace::Vendor::kSvm && segment.reason == kSvmExitNmi;
    counts_.nmi_exits += static_cast<uint64_t>(nmi);
  }
  if (segment.range.Empty()) return;
  Vcpu& vcpu = VcpuAt(segment.vcpu_index);
  TimelineInterval interval{
      segment.range,
      ContextIn(vcpu, segment.kind, segment.nested, segment.reason, segment.exit),
      segment.vcpu,
      segment.pcpu,
      segment.timeslice_id,
      segment.timeslice_begin};
  if (sampled > 0 && HasInstants(interval.context.kind)) {
    checks_.AddTime(segment.vcpu_index, segment.vcpu, segment.range, segment.timeslice_begin);
  }
  vcpu.by_context[static_cast<size_t>(interval.context.kind)] += segment.range.Length();
  if (!options_.by_waiting) return AddInterval(segment.vcpu_index, interval);
  run_queues_.ForEach(segment.pcpu, segment.range, [&](TscRange part, uint32_t set) {
    interval.range = part;
    interval.context.waiting = set;
    AddInterval(segment.vcpu_index, interval);
  });
  run_queues_.Forget(segment.pcpu, segment.range.end);
}

void Placer::OnRunstateInterval(const RunstateInterval& interval) {
  if (timeline_observer_ != nullptr) timeline_observer_->OnRunstateInterval(interval);
  Vcpu& vcpu = VcpuAt(interval.vcpu_index);
  if (interval.state == TimelineState::kOffline) vcpu.stops.Add(interval.range.begin);
  if (interval.state == TimelineState::kRunning &&
      options_.sampled.Contains(interval.range.begin)) {
    checks_.AddTimeslice(interval.vcpu_index, interval.vcpu, interval.range.Length());
  }
  if (interval.state != TimelineState::kLost) {
    vcpu.known += interval.range.Length();
    return;
  }
  vcpu.last_exit_known = false;
  if (interval.range.Empty()) return;
  const Cycles unseen = losses_.LostTimeUntil(interval.range.end) - vcpu.lost_before +
                        (interval.range.end - std::max(interval.range.begin, losses_.ended()));
  vcpu.known += interval.range.Length() - std::min(interval.range.Length(), unseen);
  vcpu.history.Add({interval.range,
                    {ContextKind::kLost},
                    interval.vcpu,
                    interval.pcpu,
                    interval.number,
                    interval.range.begin});
}

std::optional<TimelineInterval> Placer::OpenInterval(const VcpuTrack& track) const {
  const Tsc now = timeline_.now();
  if (track.state == TimelineState::kLost) {
    return TimelineInterval{{track.since, now}, {ContextKind::kLost}, track.ref,
                            track.pcpu,         track.timeslice_id,   track.since};
  }
  if (track.state != TimelineState::kRunning) return std::nullopt;
  const Context context = track.index < vcpus_.size()
                              ? ContextIn(vcpus_[track.index], track.segment, track.exit_nested,
                                          track.exit_reason, track.exit)
                              : ContextOf(track.segment, track.exit_nested, track.exit_reason);
  return TimelineInterval{{track.segment_since, now}, context,    track.ref, track.pcpu,
                          track.timeslice_id,         track.since};
}

template <typename Visitor>
void Placer::ForEachOpen(const VcpuTrack& track, Visitor visit) const {
  std::optional<TimelineInterval> open = OpenInterval(track);
  if (!open || open->range.Empty()) return;
  if (!options_.by_waiting || open->context.kind == ContextKind::kLost) return visit(*open);
  run_queues_.ForEach(open->pcpu, open->range, [&](TscRange part, uint32_t set) {
    open->range = part;
    open->context.waiting = set;
    visit(*open);
  });
}

bool Placer::OutsideTrace(TscRange bracket) const {
  return !trace_begun_ || bracket.end <= trace_begin_ || bracket.begin >= timeline_.now();
}

bool Placer::PlaceUnknownVcpu(const Sample& sample, const VcpuTrack* track) {
  if (track != nullptr && track->first_seen < sample.when.end) return false;
  if (UnobservedTimeIn(sample.when).lost == 0) return false;
  const Place unseen{{ContextKind::kLost}, {ContextKind::kLost}, {}, 1};
  Accept(sample, sample.vcpu, sample.address, Placement::kBracketed,
         ClusterOf(0, ContextKind::kLost, sample.when), {&unseen, 1}, sample.when);
  return true;
}

void Placer::PlaceBatch() {
  const Sample& first = batch_.front();
  counts_.samples += batch_.size();
  if (first.when.begin < forgotten_) {
    for (const Sample& sample : batch_) Reject(sample, UnplacedReason::kOutOfOrder);
    return;
  }
  const bool domain_unknown = first.vcpu.domain >= kFirstReservedDomain;
  if (first.IsInstant() || (first.timed && domain_unknown)) {
    for (const Sample& sample : batch_) PlaceInstant(sample);
    return;
  }
  if (first.stopped) {
    for (const Sample& sample : batch_) PlaceStopped(sample);
    return;
  }
  if (first.timed) {
    for (const Sample& sample : batch_) PlaceTimed(sample);
    return;
  }
  const VcpuTrack* track = Find(first.vcpu);
  if (track == nullptr) {
    const UnplacedReason why =
        OutsideTrace(first.when) ? UnplacedReason::kOutsideTrace : UnplacedReason::kUnknownVcpu;
    for (const Sample& sample : batch_) {
      if (!PlaceUnknownVcpu(sample, track)) Reject(sample, why);
    }
    return;
  }
  PlaceBrackets(VcpuAt(track->index), *track);
}

void Placer::PlaceInstant(const Sample& sample) {
  const Tsc at = sample.when.begin + sample.when.Length() / 2;
  std::optional<TimelineInterval> found;
  const auto look = [&](const TimelineHistory& window, const VcpuTrack* open) {
    if (const TimelineInterval* interval = window.At(at)) {
      found = *interval;
    } else if (open != nullptr) {
      ForEachOpen(*open, [&](const TimelineInterval& last) {
        if (last.range.Contains(at)) found = last;
      });
    }
  };
  const bool domain_unknown = sample.vcpu.domain >= kFirstReservedDomain;
  if (domain_unknown && sample.pcpu && sample.pcpu->value < pcpus_.size()) {
    look(pcpus_[sample.pcpu->value], timeline_.Current(*sample.pcpu));
  } else if (!domain_unknown) {
    const VcpuTrack* track = Find(sample.vcpu);
    if (track == nullptr) return Reject(sample, UnplacedReason::kUnknownVcpu);
    look(VcpuAt(track->index).history, track);
  }
  if (!found) {
    if (OutsideTrace(sample.when)) return Reject(sample, UnplacedReason::kOutsideTrace);
    return Reject(sample,
                  domain_unknown ? UnplacedReason::kUnknownVcpu : UnplacedReason::kNotRunning);
  }
  if (found->context.kind == ContextKind::kLost && UnobservedTimeIn({at, at + 1}).lost == 0) {
    return Reject(sample, UnplacedReason::kTraceLost);
  }
  const Place place = CertainPlace(*found);
  if (const VcpuTrack* track = Find(found->vcpu)) {
    if (HasInstants(found->context.kind)) {
      checks_.AddExact(track->index, found->vcpu, at - found->timeslice_begin);
    } else {
      checks_.AddOther(track->index, found->vcpu);
    }
  }
  Accept(sample, found->vcpu, sample.address, Placement::kInstant,
         ClusterOf(found->timeslice_id, found->context.kind, sample.when), {&place, 1},
         sample.when);
}

std::optional<Tsc> Placer::StopWithin(const Vcpu& vcpu, const VcpuTrack& track, TscRange bracket) {
  const auto stop = std::lower_bound(vcpu.stops.begin(), vcpu.stops.end(), bracket.begin);
  if (stop != vcpu.stops.end() && *stop < bracket.end) return *stop;
  const bool still = track.state == TimelineState::kOffline && bracket.Contains(track.since);
  return still ? std::optional(track.since) : std::nullopt;
}

// A vCPU that is to stop gets an interrupt where it runs. One that was in the guest leaves it by
// that interrupt, and the sample is of the guest; else Xen was at work, and finished that first.
void Placer::PlaceStopped(const Sample& sample) {
  const VcpuTrack* track = Find(sample.vcpu);
  if (track == nullptr) {
    return Reject(sample, OutsideTrace(sample.when) ? UnplacedReason::kOutsideTrace
                                                    : UnplacedReason::kUnknownVcpu);
  }
  const Vcpu& vcpu = VcpuAt(track->index);
  const std::optional<Tsc> stop = StopWithin(vcpu, *track, sample.when);
  const TimelineInterval* interval = stop ? vcpu.history.At(Tsc{stop->value - 1}) : nullptr;
  if (interval == nullptr || interval->context.kind == ContextKind::kLost) {
    const UnplacedReason why = ReasonUnplaced(vcpu, *track, sample.when);
    if (why != UnplacedReason::kTraceLost || UnobservedTimeIn(sample.when).lost == 0) {
      return Reject(sample,
                    why == UnplacedReason::kModeDisagrees ? UnplacedReason::kNotRunning : why);
    }
    checks_.AddOther(track->index, sample.vcpu);
    const Place unseen{{ContextKind::kLost}, {ContextKind::kLost}, track->pcpu, 1};
    return Accept(sample, sample.vcpu, sample.address, Placement::kBracketed,
                  ClusterOf(track->timeslice_id, ContextKind::kLost, sample.when), {&unseen, 1},
                  sample.when);
  }
  if (interval->context.kind == ContextKind::kExit &&
      IsHostInterrupt(options_.vendor, interval->context.reason)) {
    const TimelineInterval* before = vcpu.history.At(Tsc{interval->range.begin.value - 1});
    if (before != nullptr && before->context.kind == ContextKind::kGuest) interval = before;
  }
  const Place place = CertainPlace(*interval);
  checks_.AddOther(track->index, sample.vcpu);
  Accept(sample, sample.vcpu, sample.address, Placement::kStopped,
         ClusterOf(interval->timeslice_id, interval->context.kind, sample.when), {&place, 1},
         {*stop, *stop + 1});
}

// It was taken by an interrupt of the system's own, so that no NMI of the trace is its NMI exit,
// and its address is true.
void Placer::PlaceTimed(const Sample& sample) {
  const VcpuTrack* track = Find(sample.vcpu);
  if (track == nullptr) {
    return Reject(sample, OutsideTrace(sample.when) ? UnplacedReason::kOutsideTrace
                                                    : UnplacedReason::kUnknownVcpu);
  }
  const Vcpu& vcpu = VcpuAt(track->index);
  const Candidates found = FindCandidates(vcpu, *track, sample.mode, sample.when, 1);
  if (found.empty()) return Reject(sample, ReasonUnplaced(vcpu, *track, sample.when));
  checks_.AddBracketed(track->index, sample.vcpu, found.when.Length());
  Accept(sample, sample.vcpu, sample.address, Placement::kBracketed, found.ClusterAt(0.5),
         found.PlacesOf(0), found.when);
}

std::vector<const ExitMark*> Placer::FindNmiExits(Vcpu& vcpu) const {
  std::vector<const ExitMark*> nmi_exits(batch_.size(), nullptr);
  const TscRange bracket = batch_.front().when;
  std::vector<size_t> samples;
  std::vector<GuestSample> guest;
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].mode == Mode::kXen) continue;
    samples.push_back(i);
    guest.push_back({batch_[i].address, batch_[i].mode});
  }
  std::vector<const ExitMark*> marks;
  std::vector<ExitMark> exits;
  const Tsc from = std::max(bracket.begin, vcpu.nmi_matched_until);
  for (auto mark = FirstSince(vcpu.exits, from); mark != vcpu.exits.end(); ++mark) {
    if (mark->tsc >= bracket.end) break;
    if (!mark->nmi) continue;
    marks.push_back(&*mark);
    exits.push_back(*mark);
  }
  for (const NmiMatch& pair : MatchNmiExits(guest, exits, options_.logged_rip)) {
    nmi_exits[samples[pair.sample]] = marks[pair.exit];
    vcpu.nmi_matched_until = marks[pair.exit]->tsc + 1;
  }
  return nmi_exits;
}

void Placer::PlaceBrackets(Vcpu& vcpu, const VcpuTrack& track) {
  const TscRange bracket = batch_.front().when;
  const std::vector<const ExitMark*> nmi_exits = FindNmiExits(vcpu);
  // Samples of one buffer are in order of time: an NMI exit ends the brackets of those before it
  // and begins those of the ones after it.
  TscRange between{bracket.begin, bracket.begin};
  struct ModeCandidates {
    std::optional<Candidates> candidates;
    size_t samples = 0;
    size_t before = 0;  // of these, before the one at hand
  };
  std::array<ModeCandidates, 2> modes;  // guest and Xen, in `between`
  ExitCandidates at_exits;              // in `between`
  for (size_t i = 0; i < batch_.size(); ++i) {
    const Sample& sample = batch_[i];
    if (nmi_exits[i] != nullptr) {
      const Context guest = GuestBefore(*nmi_exits[i]);
      const Place place{guest, guest, nmi_exits[i]->pcpu, 1};
      checks_.AddExact(track.index, sample.vcpu, nmi_exits[i]->tsc - nmi_exits[i]->timeslice_begin);
      Accept(sample, sample.vcpu, nmi_exits[i]->rip, Placement::kNmiExit,
             ClusterOf(nmi_exits[i]->timeslice_id, guest.kind, bracket), {&place, 1},
             {nmi_exits[i]->tsc, nmi_exits[i]->tsc + 1});
      between = {nmi_exits[i]->tsc, nmi_exits[i]->tsc};
      continue;
    }
    if (between.Empty()) {
      const auto next =
          std::find_if(nmi_exits.begin() + static_cast<std::ptrdiff_t>(i), nmi_exits.end(),
                       [](const ExitMark* nmi_exit) { return nmi_exit != nullptr; });
      between.end = next == nmi_exits.end() ? bracket.end : (*next)->tsc;
      modes = {};
      at_exits.clear();
      for (auto other = i; other < nmi_exits.size() && nmi_exits[other] == nullptr; ++other) {
        ++modes.at(ModeIndex(batch_[other])).samples;
      }
    }
    ModeCandidates& mode = modes.at(ModeIndex(sample));
    const size_t before = mode.before++;
    const double part = (static_cast<double>(before) + 0.5) / static_cast<double>(mode.samples);
    const bool guest = track.kind == VcpuKind::kHvm && sample.mode != Mode::kXen;
    if (guest && options_.vendor == trace::Vendor::kSvm) {
      const auto [at, is_new] = at_exits.try_emplace({sample.address, sample.mode});
      Candidates& exits = at->second;
      if (is_new) {
        exits = FindExits(vcpu, sample, between);
        if (exits.empty() && between != bracket) exits = FindExits(vcpu, sample, bracket);
      }
      if (!exits.empty()) {
        checks_.AddOther(track.index, sample.vcpu);
        checks_.AddMissed(track.index, sample.vcpu);
        Accept(sample, sample.vcpu, exits.address, Placement::kAtExit, exits.ClusterAt(part),
               exits.PlacesOf(0), exits.when, exits.first_list);
        continue;
      }
    }
    std::optional<Candidates>& found = mode.candidates;
    if (!found) {
      found = FindCandidates(vcpu, track, sample.mode, between, mode.samples);
      if (found->empty()) found = FindCandidates(vcpu, track, sample.mode, bracket, 1);
    }
    if (found->empty()) {
      Reject(sample, ReasonUnplaced(vcpu, track, bracket));
      continue;
    }
    checks_.AddBracketed(track.index, sample.vcpu, found->when.Length());
    if (guest) checks_.AddMissed(track.index, sample.vcpu);
    counts_.stale += static_cast<uint64_t>(guest && options_.logged_rip == LoggedRip::kOfLastEntry);
    const size_t rank = found->ranks == 1 ? 0 : RankOf(before, mode.samples);
    Accept(sample, sample.vcpu, sample.address, Placement::kBracketed, found->ClusterAt(part),
           found->PlacesOf(rank), found->when, found->first_list + rank);
  }
}

Placer::Candidates Placer::FindExits(const Vcpu& vcpu, const Sample& sample, TscRange bracket) {
  Candidates found;
  found.when = bracket;
  found.address = sample.address;
  times_.clear();
  uint32_t most = 0;
  // The NMI came just before the exit's record: an exit at the bracket's end is a candidate too.
  MatchQuality best = MatchQuality::kWeak;
  for (auto mark = FirstSince(vcpu.exits, bracket.begin);
       mark != vcpu.exits.end() && mark->tsc <= bracket.end; ++mark) {
    const MatchQuality quality =
        MatchQualityOf(*mark, {sample.address, sample.mode}, options_.logged_rip);
    if (mark->nmi || quality < best) continue;
    if (quality > best) {
      best = quality;
      found.places.clear();
      found.clusters.clear();
      times_.clear();
      most = 0;
    }
    AddWeight(found.places, {mark->context, GuestBefore(*mark), mark->pcpu, 1});
    AddClusterShare(found.clusters, ClusterOf(mark->timeslice_id, mark->context.kind, bracket), 1);
    const uint32_t times = ++times_[mark->rip];
    if (times <= most) continue;
    most = times;
    found.address = mark->rip;
  }
  if (!found.places.empty()) EndRank(found);
  return found;
}

double Placer::PartOfLost(const Vcpu& vcpu, Mode mode) {
  double matching_cycles = 0;
  for (size_t kind = 0; kind < vcpu.by_context.size(); ++kind) {
    if (Agrees(mode, static_cast<ContextKind>(kind))) {
      matching_cycles += static_cast<double>(vcpu.by_context[kind]);
    }
  }
  return vcpu.known > 0 ? std::min(1.0, matching_cycles / static_cast<double>(vcpu.known)) : 0;
}

Placer::UnobservedTime Placer::UnobservedTimeIn(TscRange range) const {
  UnobservedTime unseen;
  losses_.ForEach(range, timeline_.now(),
                  [&unseen](TscRange part) { unseen.lost += part.Length(); });
  unseen.ended = range.end - std::max(range.begin, losses_.ended());
  return unseen;
}

Placer::Candidates Placer::FindCandidates(const Vcpu& vcpu, const VcpuTrack& track, Mode mode,
                                          TscRange bracket, size_t samples) {
  Candidates found;
  found.when = bracket;
  candidate_intervals_.clear();
  bool known = false;
  const double part_of_lost = PartOfLost(vcpu, mode);
  const auto add = [&](const TimelineInterval& interval, TscRange part) {
    if (!Agrees(mode, interval.context.kind)) return;
    auto length = static_cast<double>(part.Length());
    Cycles in_cluster = part.Length();
    if (interval.context.kind == ContextKind::kLost) {
      const UnobservedTime unseen = UnobservedTimeIn(part);
      // Where nothing at all is known of such time, it still is the only place there is.
      const double counts = unseen.lost > 0 && part_of_lost == 0 ? 1 : part_of_lost;
      length = counts * static_cast<double>(std::min(part.Length(), unseen.lost + unseen.ended));
      in_cluster = static_cast<Cycles>(std::ceil(counts * static_cast<double>(unseen.lost)));
    }
    if (in_cluster > 0) {
      known = true;
      AddClusterShare(found.clusters,
                      ClusterOf(interval.timeslice_id, interval.context.kind, bracket), in_cluster);
    }
    if (length <= 0) return;
    const size_t place =
        AddWeight(found.places, {interval.context, interval.context, interval.pcpu, length});
    candidate_intervals_.push_back({place, length});
  };
  vcpu.history.ForEach(bracket, add);
  ForEachOpen(track, [&](const TimelineInterval& open) {
    const TscRange part = open.range.Intersect(bracket);
    if (!part.Empty()) add(open, part);
  });
  if (!known) return found;
  if (samples == 1 || found.places.size() == 1) {
    EndRank(found);
  } else {
    WeighByRank(samples, found);
  }
  return found;
}

void Placer::WeighByRank(size_t samples, Candidates& found) {
  const size_t ranks = RanksOf(samples);
  const RankDensity& density = DensityOf(ranks);
  const double all = std::accumulate(
      candidate_intervals_.begin(), candidate_intervals_.end(), 0.0,
      [](double sum, const CandidateInterval& candidate) { return sum + candidate.length; });
  const double slot_length = all / static_cast<double>(kRankSlots);
  weights_.assign(found.places.size() * kMaxRanks, 0);
  size_t slot = 0;
  double left = slot_length;  // of the slot
  for (const CandidateInterval& candidate : candidate_intervals_) {
    double* const weights = &weights_[candidate.place * kMaxRanks];
    double length = candidate.length;
    while (length > 0) {
      const bool ends_slot = length >= left && slot + 1 < kRankSlots;
      const double here = ends_slot ? left : length;
      const auto& by_rank = density[slot];
      for (size_t rank = 0; rank < kMaxRanks; ++rank) weights[rank] += here * by_rank[rank];
      length -= here;
      left -= here;
      if (!ends_slot) break;
      ++slot;
      left = slot_length;
    }
  }
  unranked_.swap(found.places);
  found.places.clear();
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < unranked_.size(); ++i) {
      const double weight = weights_[i * kMaxRanks + rank];
      if (weight <= kNoWeight * all) continue;
      found.places.push_back(unranked_[i]);
      found.places.back().weight = weight;
    }
    EndRank(found);
  }
}

UnplacedReason Placer::ReasonUnplaced(const Vcpu& vcpu, const VcpuTrack& track,
                                      TscRange bracket) const {
  if (OutsideTrace(bracket)) return UnplacedReason::kOutsideTrace;
  bool lost = false;
  bool ran = false;
  const auto look = [&](const TimelineInterval& interval, TscRange) {
    (interval.context.kind == ContextKind::kLost ? lost : ran) = true;
  };
  vcpu.history.ForEach(bracket, look);
  const std::optional<TimelineInterval> open = OpenInterval(track);
  if (open && !open->range.Intersect(bracket).Empty()) look(*open, bracket);
  if (lost) return UnplacedReason::kTraceLost;
  return ran ? UnplacedReason::kModeDisagrees : UnplacedReason::kNotRunning;
}

uint64_t Placer::Candidates::ClusterAt(double part) const {
  if (clusters.empty()) return 0;
  const double at = part * static_cast<double>(clusters.back().until);
  const auto cluster = std::partition_point(
      clusters.begin(), clusters.end(),
      [at](const ClusterShare& share) { return static_cast<double>(share.until) <= at; });
  return cluster == clusters.end() ? clusters.back().number : cluster->number;
}

void Placer::EndRank(Candidates& found) {
  const std::span<Place> places =
      std::span(found.places).subspan(found.ranks == 0 ? 0 : found.ends[found.ranks - 1]);
  const auto sum = [&places] {
    return std::accumulate(places.begin(), places.end(), 0.0,
                           [](double a, const Place& b) { return a + b.weight; });
  };
  const double all = sum();
  for (Place& place : places) place.length = place.weight /= all;
  const double normalised = sum();
  if (!(std::abs(normalised - 1) <= kWeightTolerance) && fault_.ok()) {
    fault_ = InternalError("the places of a sample weigh {} and not 1", normalised);
  }
  found.ends[found.ranks++] = static_cast<uint32_t>(found.places.size());
  ++lists_;
  if (found.ranks == 1) found.first_list = lists_;
}

void Placer::Accept(const Sample& sample, VcpuRef vcpu, Address address, Placement placement,
                    uint64_t cluster, std::span<const Place> places, TscRange when, uint64_t list) {
  ++counts_.placed[static_cast<size_t>(placement)];
  counts_.repaired += static_cast<uint64_t>(address != sample.address);
  observer_->OnPlaced(
      {&sample, vcpu, address, placement, cluster, places, std::nullopt, when, list});
}

void Placer::Reject(const Sample& sample, UnplacedReason why) {
  ++counts_.unplaced[static_cast<size_t>(why)];
  if (why == UnplacedReason::kNotRunning || why == UnplacedReason::kModeDisagrees) {
    if (const VcpuTrack* track = Find(sample.vcpu)) checks_.AddImpossible(track->index, track->ref);
  }
  observer_->OnUnplaced(sample, why);
}

void Placer::Forget() {
  const Tsc now = timeline_.now();
  forget_at_ = now + std::max(options_.longest_bracket / 2, kForgetEvery);
  Tsc horizon = now;
  if (!batch_.empty()) {
    const uint64_t end = batch_.front().when.end.value;
    horizon = {end - std::min(end, options_.longest_bracket)};
    horizon = std::min(horizon, now);
  }
  forgotten_ = std::max(forgotten_, horizon);
  for (Vcpu& vcpu : vcpus_) {
    vcpu.history.DropBefore(forgotten_);
    vcpu.exits.DropWhile([this](const ExitMark& mark) { return mark.tsc < forgotten_; });
    vcpu.stops.DropWhile([this](Tsc stop) { return stop < forgotten_; });
  }
  for (TimelineHistory& pcpu : pcpus_) pcpu.DropBefore(forgotten_);
  losses_.DropBefore(forgotten_);
}

absl::Status Placer::Finish() {
  timeline_.Finish();
  for (Vcpu& vcpu : vcpus_) {
    for (const Traced& traced : std::exchange(vcpu.traced, {})) {
      if (traced.cycles > 0) observer_->OnTraced(vcpu.ref, traced.context, traced.cycles);
    }
  }
  while (!batch_.empty()) {
    PlaceBatch();
    ReadBatch();
  }
  XENOSCOPE_RETURN_IF_ERROR(fault_);
  if (counts_.samples != counts_.Attributed() + counts_.Unplaced()) {
    return InternalError("{} samples, but {} placed and {} in remainders", counts_.samples,
                         counts_.Attributed(), counts_.Unplaced());
  }
  return absl::OkStatus();
}

PlacingCounts PlaceWithoutTrace(SampleSource& samples, PlacingObserver& observer) {
  constexpr Place kNowhere{{}, {}, {}, 1};
  PlacingCounts counts;
  while (const Sample* sample = samples.Next()) {
    ++counts.samples;
    ++counts.placed[static_cast<size_t>(Placement::kUntraced)];
    // A running interval of its own: which samples share one is not known.
    observer.OnPlaced({sample,
                       sample->vcpu,
                       sample->address,
                       Placement::kUntraced,
                       counts.samples,
                       {&kNowhere, 1},
                       std::nullopt,
                       sample->when});
  }
  return counts;
}

}  // namespace xenoscope::correlate
