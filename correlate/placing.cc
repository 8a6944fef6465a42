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
constexpr size_t kMostSubreasons = 4096;

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

// Whether samples in such pieces can have known instants: those of NMI exits, and others.
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

Window<ExitMark>::Iterator FirstSince(const Window<ExitMark>& exits, Tsc t) {
  return std::partition_point(exits.begin(), exits.end(),
                              [t](const ExitMark& mark) { return mark.tsc < t; });
}

void AddRun(std::vector<RunShare>& runs, uint64_t number, Cycles length) {
  const Cycles before = runs.empty() ? 0 : runs.back().until;
  if (runs.empty() || runs.back().number != number) runs.push_back({before, number});
  runs.back().until += length;
}

size_t IsXen(const Sample& sample) { return sample.mode == Mode::kXen ? 1 : 0; }

// The cluster of a sample (method.md §5.2): the running interval that it is of, in the order of
// time. Of time that was lost nothing tells where one ends: there it is the bracket, a million of
// which are told apart between two running intervals that were seen.
uint64_t ClusterOf(uint64_t run, ContextKind kind, TscRange when) {
  constexpr int kBracketBits = 20;
  constexpr int kBracketsApart = 10;
  constexpr uint64_t kBracketMask = (uint64_t{1} << kBracketBits) - 1;
  const uint64_t bracket = (when.begin.value >> kBracketsApart & kBracketMask) | 1;
  return run << kBracketBits | (kind == ContextKind::kLost ? bracket : 0);
}

Place Surely(const Piece& piece) { return {piece.context, piece.context, piece.pcpu, 1}; }

}  // namespace

const char* ToString(Placement placement) {
  switch (placement) {
    case Placement::kInstant:
      return "instant";
    case Placement::kTwin:
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

const char* ToString(Remainder remainder) {
  switch (remainder) {
    case Remainder::kOutsideTrace:
      return "outside_trace";
    case Remainder::kUnknownVcpu:
      return "unknown_vcpu";
    case Remainder::kNotRunning:
      return "not_running";
    case Remainder::kModeDisagrees:
      return "mode_disagrees";
    case Remainder::kTraceLost:
      return "trace_lost";
    case Remainder::kOutOfOrder:
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
               TimelineObserver* looking_on)
    : options_(options),
      samples_(&samples),
      observer_(&observer),
      looking_on_(looking_on),
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

Placer::Vcpu& Placer::Of(uint32_t index) {
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
  if (item.kind != trace::ItemKind::kRecord) NoteLoss(item);
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
          Vcpu& vcpu = Of(track->index);
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

void Placer::NoteLoss(const trace::Item& item) {
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
  Vcpu& vcpu = Of(track.index);
  ExitMark mark;
  mark.tsc = track.exit_tsc;
  mark.pcpu = track.pcpu;
  mark.run = track.run;
  mark.turn = track.since;
  mark.reason = track.exit_reason;
  mark.nested = track.exit_nested;
  mark.nmi = options_.vendor == trace::Vendor::kSvm && track.exit_reason == kSvmExitNmi;
  mark.rip = track.exit_rip;
  mark.context = {ContextKind::kExit, mark.nested, mark.reason};
  if (options_.by_waiting) mark.context.waiting = waiting_.Now(mark.pcpu);
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
  Wakeup& wakeup = Of(track->index).wakeup;
  if (record.event == trace::Event::kHvmVmentry) {
    wakeup.OnEntry();
  } else {
    wakeup.OnInterrupt(record.payload.Word(0));
  }
}

void Placer::NoteContents(const trace::Record& record) {
  const VcpuTrack* track = timeline_.Current(record.pcpu);
  if (track == nullptr || !track->exit_open) return;
  Vcpu& vcpu = Of(track->index);
  if (vcpu.contents.exit != track->exit) vcpu.contents.Open(track->exit);
  vcpu.contents.Take(record);
  if (vcpu.contents.rank == 0) return;
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << kShadowFlagsShift) - 1;
  if (vcpu.contents.kind == ExitKind::kPageFault) vcpu.contents.number &= kWithoutFlags;
  const std::pair told{vcpu.contents.kind, vcpu.contents.number};
  if (subreasons_.size() < kMostSubreasons) {
    subreasons_.insert(told);
  } else if (!subreasons_.contains(told)) {
    vcpu.contents.kind = ExitKind::kOthers;
    vcpu.contents.number = 0;
  }
  if (vcpu.exits.empty()) return;
  vcpu.exits.back().context.about = vcpu.contents.kind;
  vcpu.exits.back().context.number = vcpu.contents.number;
}

Context Placer::ContextIn(const Vcpu& vcpu, SegmentKind kind, bool nested, uint32_t reason,
                          uint64_t exit) const {
  Context context = ContextOf(kind, nested, reason);
  if (context.kind == ContextKind::kExit && vcpu.contents.exit == exit) {
    context.about = vcpu.contents.kind;
    context.number = vcpu.contents.number;
  }
  if (options_.by_wakeup) context.wakeup = vcpu.wakeup.now();
  return context;
}

void Placer::AddPiece(uint32_t index, const Piece& piece) {
  const Cycles sampled = piece.range.Intersect(options_.sampled).Length();
  Vcpu& vcpu = Of(index);
  if (sampled > 0 && !IsIdle(piece.vcpu)) AddTraced(vcpu, piece, sampled);
  vcpu.pieces.Add(piece);
  if (piece.pcpu.value >= pcpus_.size()) pcpus_.resize(piece.pcpu.value + 1);
  pcpus_[piece.pcpu.value].Add(piece);
}

void Placer::AddTraced(Vcpu& vcpu, const Piece& piece, Cycles cycles) {
  if (vcpu.traced.empty()) {
    vcpu.ref = piece.vcpu;
    vcpu.traced.resize(kTracedContexts);
  }
  const Context& context = piece.context;
  const uint64_t mixed = context.reason + 7 * static_cast<uint64_t>(context.kind) + context.number +
                         context.waiting + context.wakeup;
  Traced& traced = vcpu.traced[mixed % kTracedContexts];
  if (traced.context != context) {
    if (traced.cycles > 0) observer_->OnTraced(piece.vcpu, traced.context, traced.cycles);
    traced = {context, 0};
  }
  traced.cycles += cycles;
}

void Placer::OnState(const VcpuTrack& track, RunState before) {
  if (looking_on_ != nullptr) looking_on_->OnState(track, before);
  if (track.state == RunState::kLost) Of(track.index).lost_before = losses_.Until(track.since);
  if (options_.by_wakeup) Of(track.index).wakeup.OnState(track.state, before);
  if (options_.by_waiting) waiting_.OnState(track);
}

void Placer::OnExit(const ExitArc& arc) {
  if (looking_on_ != nullptr) looking_on_->OnExit(arc);
}

void Placer::OnMark(const Mark& mark) {
  if (looking_on_ != nullptr) looking_on_->OnMark(mark);
}

void Placer::OnSegment(const Segment& segment) {
  if (looking_on_ != nullptr) looking_on_->OnSegment(segment);
  const Cycles sampled = segment.range.Intersect(options_.sampled).Length();
  if (sampled > 0 && !IsIdle(segment.vcpu)) {
    const bool nmi = segment.kind == SegmentKind::kExit && segment.first &&
                     options_.vendor == trace::Vendor::kSvm && segment.reason == kSvmExitNmi;
    counts_.nmi_exits += static_cast<uint64_t>(nmi);
  }
  if (segment.range.Empty()) return;
  Vcpu& vcpu = Of(segment.vcpu_index);
  Piece piece{
      segment.range, ContextIn(vcpu, segment.kind, segment.nested, segment.reason, segment.exit),
      segment.vcpu,  segment.pcpu,
      segment.run,   segment.turn};
  if (sampled > 0 && HasInstants(piece.context.kind)) {
    checks_.AddTime(segment.vcpu_index, segment.vcpu, segment.range, segment.turn);
  }
  vcpu.by_context[static_cast<size_t>(piece.context.kind)] += segment.range.Length();
  if (!options_.by_waiting) return AddPiece(segment.vcpu_index, piece);
  waiting_.ForEach(segment.pcpu, segment.range, [&](TscRange part, uint32_t set) {
    piece.range = part;
    piece.context.waiting = set;
    AddPiece(segment.vcpu_index, piece);
  });
  waiting_.Forget(segment.pcpu, segment.range.end);
}

void Placer::OnRun(const RunInterval& interval) {
  if (looking_on_ != nullptr) looking_on_->OnRun(interval);
  Vcpu& vcpu = Of(interval.vcpu_index);
  if (interval.state == RunState::kOffline) vcpu.stops.Add(interval.range.begin);
  if (interval.state == RunState::kRunning && options_.sampled.Contains(interval.range.begin)) {
    checks_.AddTurn(interval.vcpu_index, interval.vcpu, interval.range.Length());
  }
  if (interval.state != RunState::kLost) {
    vcpu.known += interval.range.Length();
    return;
  }
  vcpu.last_exit_known = false;
  if (interval.range.Empty()) return;
  const Cycles unseen = losses_.Until(interval.range.end) - vcpu.lost_before +
                        (interval.range.end - std::max(interval.range.begin, losses_.ended()));
  vcpu.known += interval.range.Length() - std::min(interval.range.Length(), unseen);
  vcpu.pieces.Add({interval.range,
                   {ContextKind::kLost},
                   interval.vcpu,
                   interval.pcpu,
                   interval.number,
                   interval.range.begin});
}

std::optional<Piece> Placer::OpenPiece(const VcpuTrack& track) const {
  const Tsc now = timeline_.now();
  if (track.state == RunState::kLost) {
    return Piece{{track.since, now}, {ContextKind::kLost}, track.ref, track.pcpu,
                 track.run,          track.since};
  }
  if (track.state != RunState::kRunning) return std::nullopt;
  const Context context = track.index < vcpus_.size()
                              ? ContextIn(vcpus_[track.index], track.segment, track.exit_nested,
                                          track.exit_reason, track.exit)
                              : ContextOf(track.segment, track.exit_nested, track.exit_reason);
  return Piece{{track.segment_since, now}, context, track.ref, track.pcpu, track.run, track.since};
}

template <typename Visitor>
void Placer::ForEachOpen(const VcpuTrack& track, Visitor visit) const {
  std::optional<Piece> open = OpenPiece(track);
  if (!open || open->range.Empty()) return;
  if (!options_.by_waiting || open->context.kind == ContextKind::kLost) return visit(*open);
  waiting_.ForEach(open->pcpu, open->range, [&](TscRange part, uint32_t set) {
    open->range = part;
    open->context.waiting = set;
    visit(*open);
  });
}

bool Placer::OutsideTrace(TscRange bracket) const {
  return !trace_begun_ || bracket.end <= trace_begin_ || bracket.begin >= timeline_.now();
}

bool Placer::PlaceUnmet(const Sample& sample, const VcpuTrack* track) {
  if (track != nullptr && track->met < sample.when.end) return false;
  if (UnseenIn(sample.when).lost == 0) return false;
  const Place unseen{{ContextKind::kLost}, {ContextKind::kLost}, {}, 1};
  Accept(sample, sample.vcpu, sample.address, Placement::kBracketed,
         ClusterOf(0, ContextKind::kLost, sample.when), {&unseen, 1}, sample.when);
  return true;
}

void Placer::PlaceBatch() {
  const Sample& first = batch_.front();
  counts_.samples += batch_.size();
  if (first.when.begin < forgotten_) {
    for (const Sample& sample : batch_) Reject(sample, Remainder::kOutOfOrder);
    return;
  }
  const bool nobodys = first.vcpu.domain >= kFirstReservedDomain;
  if (first.IsInstant() || (first.timed && nobodys)) {
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
    const Remainder why =
        OutsideTrace(first.when) ? Remainder::kOutsideTrace : Remainder::kUnknownVcpu;
    for (const Sample& sample : batch_) {
      if (!PlaceUnmet(sample, track)) Reject(sample, why);
    }
    return;
  }
  PlaceBrackets(Of(track->index), *track);
}

void Placer::PlaceInstant(const Sample& sample) {
  const Tsc at = sample.when.begin + sample.when.Length() / 2;
  std::optional<Piece> found;
  const auto look = [&](const PieceWindow& window, const VcpuTrack* open) {
    if (const Piece* piece = window.At(at)) {
      found = *piece;
    } else if (open != nullptr) {
      ForEachOpen(*open, [&](const Piece& last) {
        if (last.range.Contains(at)) found = last;
      });
    }
  };
  const bool nobodys = sample.vcpu.domain >= kFirstReservedDomain;
  if (nobodys && sample.pcpu && sample.pcpu->value < pcpus_.size()) {
    look(pcpus_[sample.pcpu->value], timeline_.Current(*sample.pcpu));
  } else if (!nobodys) {
    const VcpuTrack* track = Find(sample.vcpu);
    if (track == nullptr) return Reject(sample, Remainder::kUnknownVcpu);
    look(Of(track->index).pieces, track);
  }
  if (!found) {
    if (OutsideTrace(sample.when)) return Reject(sample, Remainder::kOutsideTrace);
    return Reject(sample, nobodys ? Remainder::kUnknownVcpu : Remainder::kNotRunning);
  }
  if (found->context.kind == ContextKind::kLost && UnseenIn({at, at + 1}).lost == 0) {
    return Reject(sample, Remainder::kTraceLost);
  }
  const Place place = Surely(*found);
  if (const VcpuTrack* track = Find(found->vcpu)) {
    if (HasInstants(found->context.kind)) {
      checks_.AddExact(track->index, found->vcpu, at - found->turn);
    } else {
      checks_.AddOther(track->index, found->vcpu);
    }
  }
  Accept(sample, found->vcpu, sample.address, Placement::kInstant,
         ClusterOf(found->run, found->context.kind, sample.when), {&place, 1}, sample.when);
}

std::optional<Tsc> Placer::StopWithin(const Vcpu& vcpu, const VcpuTrack& track, TscRange bracket) {
  const auto stop = std::lower_bound(vcpu.stops.begin(), vcpu.stops.end(), bracket.begin);
  if (stop != vcpu.stops.end() && *stop < bracket.end) return *stop;
  const bool still = track.state == RunState::kOffline && bracket.Contains(track.since);
  return still ? std::optional(track.since) : std::nullopt;
}

// A vCPU that is to stop gets an interrupt where it runs. One that was in the guest leaves it by
// that interrupt, and the sample is of the guest; else Xen was at work, and finished that first.
void Placer::PlaceStopped(const Sample& sample) {
  const VcpuTrack* track = Find(sample.vcpu);
  if (track == nullptr) {
    return Reject(sample,
                  OutsideTrace(sample.when) ? Remainder::kOutsideTrace : Remainder::kUnknownVcpu);
  }
  const Vcpu& vcpu = Of(track->index);
  const std::optional<Tsc> stop = StopWithin(vcpu, *track, sample.when);
  const Piece* piece = stop ? vcpu.pieces.At(Tsc{stop->value - 1}) : nullptr;
  if (piece == nullptr || piece->context.kind == ContextKind::kLost) {
    const Remainder why = WhyNowhere(vcpu, *track, sample.when);
    if (why != Remainder::kTraceLost || UnseenIn(sample.when).lost == 0) {
      return Reject(sample, why == Remainder::kModeDisagrees ? Remainder::kNotRunning : why);
    }
    checks_.AddOther(track->index, sample.vcpu);
    const Place unseen{{ContextKind::kLost}, {ContextKind::kLost}, track->pcpu, 1};
    return Accept(sample, sample.vcpu, sample.address, Placement::kBracketed,
                  ClusterOf(track->run, ContextKind::kLost, sample.when), {&unseen, 1},
                  sample.when);
  }
  if (piece->context.kind == ContextKind::kExit &&
      IsHostInterrupt(options_.vendor, piece->context.reason)) {
    const Piece* before = vcpu.pieces.At(Tsc{piece->range.begin.value - 1});
    if (before != nullptr && before->context.kind == ContextKind::kGuest) piece = before;
  }
  const Place place = Surely(*piece);
  checks_.AddOther(track->index, sample.vcpu);
  Accept(sample, sample.vcpu, sample.address, Placement::kStopped,
         ClusterOf(piece->run, piece->context.kind, sample.when), {&place, 1}, {*stop, *stop + 1});
}

// It was taken by an interrupt of the system's own, so that no NMI of the trace is its twin, and
// its address is true.
void Placer::PlaceTimed(const Sample& sample) {
  const VcpuTrack* track = Find(sample.vcpu);
  if (track == nullptr) {
    return Reject(sample,
                  OutsideTrace(sample.when) ? Remainder::kOutsideTrace : Remainder::kUnknownVcpu);
  }
  const Vcpu& vcpu = Of(track->index);
  const Candidates found = FindCandidates(vcpu, *track, sample.mode, sample.when, 1);
  if (found.empty()) return Reject(sample, WhyNowhere(vcpu, *track, sample.when));
  checks_.AddBracketed(track->index, sample.vcpu, found.when.Length());
  Accept(sample, sample.vcpu, sample.address, Placement::kBracketed, found.RunAt(0.5),
         found.PlacesOf(0), found.when);
}

std::vector<const ExitMark*> Placer::FindTwins(Vcpu& vcpu) const {
  std::vector<const ExitMark*> twins(batch_.size(), nullptr);
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
  const Tsc from = std::max(bracket.begin, vcpu.twins_until);
  for (auto mark = FirstSince(vcpu.exits, from); mark != vcpu.exits.end(); ++mark) {
    if (mark->tsc >= bracket.end) break;
    if (!mark->nmi) continue;
    marks.push_back(&*mark);
    exits.push_back(*mark);
  }
  for (const Twins& pair : MatchTwins(guest, exits, options_.logged_rip)) {
    twins[samples[pair.sample]] = marks[pair.exit];
    vcpu.twins_until = marks[pair.exit]->tsc + 1;
  }
  return twins;
}

void Placer::PlaceBrackets(Vcpu& vcpu, const VcpuTrack& track) {
  const TscRange bracket = batch_.front().when;
  const std::vector<const ExitMark*> twins = FindTwins(vcpu);
  // Samples of one buffer are in order of time: a twin ends the brackets of those before it and
  // begins those of the ones after it.
  TscRange between{bracket.begin, bracket.begin};
  struct OfMode {
    std::optional<Candidates> candidates;
    size_t samples = 0;
    size_t before = 0;  // of these, before the one at hand
  };
  std::array<OfMode, 2> modes;  // guest and Xen, in `between`
  AtExits at_exits;             // in `between`
  for (size_t i = 0; i < batch_.size(); ++i) {
    const Sample& sample = batch_[i];
    if (twins[i] != nullptr) {
      const Context guest = GuestBefore(*twins[i]);
      const Place place{guest, guest, twins[i]->pcpu, 1};
      checks_.AddExact(track.index, sample.vcpu, twins[i]->tsc - twins[i]->turn);
      Accept(sample, sample.vcpu, twins[i]->rip, Placement::kTwin,
             ClusterOf(twins[i]->run, guest.kind, bracket), {&place, 1},
             {twins[i]->tsc, twins[i]->tsc + 1});
      between = {twins[i]->tsc, twins[i]->tsc};
      continue;
    }
    if (between.Empty()) {
      const auto next = std::find_if(twins.begin() + static_cast<std::ptrdiff_t>(i), twins.end(),
                                     [](const ExitMark* twin) { return twin != nullptr; });
      between.end = next == twins.end() ? bracket.end : (*next)->tsc;
      modes = {};
      at_exits.clear();
      for (auto other = i; other < twins.size() && twins[other] == nullptr; ++other) {
        ++modes.at(IsXen(batch_[other])).samples;
      }
    }
    OfMode& mode = modes.at(IsXen(sample));
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
        Accept(sample, sample.vcpu, exits.address, Placement::kAtExit, exits.RunAt(part),
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
      Reject(sample, WhyNowhere(vcpu, track, bracket));
      continue;
    }
    checks_.AddBracketed(track.index, sample.vcpu, found->when.Length());
    if (guest) checks_.AddMissed(track.index, sample.vcpu);
    counts_.stale += static_cast<uint64_t>(guest && options_.logged_rip == LoggedRip::kOfLastEntry);
    const size_t rank = found->ranks == 1 ? 0 : RankOf(before, mode.samples);
    Accept(sample, sample.vcpu, sample.address, Placement::kBracketed, found->RunAt(part),
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
  Fit best = Fit::kOdd;
  for (auto mark = FirstSince(vcpu.exits, bracket.begin);
       mark != vcpu.exits.end() && mark->tsc <= bracket.end; ++mark) {
    const Fit fit = FitOf(*mark, {sample.address, sample.mode}, options_.logged_rip);
    if (mark->nmi || fit < best) continue;
    if (fit > best) {
      best = fit;
      found.places.clear();
      found.runs.clear();
      times_.clear();
      most = 0;
    }
    AddWeight(found.places, {mark->context, GuestBefore(*mark), mark->pcpu, 1});
    AddRun(found.runs, ClusterOf(mark->run, mark->context.kind, bracket), 1);
    const uint32_t times = ++times_[mark->rip];
    if (times <= most) continue;
    most = times;
    found.address = mark->rip;
  }
  if (!found.places.empty()) EndRank(found);
  return found;
}

double Placer::PartOfLost(const Vcpu& vcpu, Mode mode) {
  double so = 0;
  for (size_t kind = 0; kind < vcpu.by_context.size(); ++kind) {
    if (Agrees(mode, static_cast<ContextKind>(kind))) {
      so += static_cast<double>(vcpu.by_context[kind]);
    }
  }
  return vcpu.known > 0 ? std::min(1.0, so / static_cast<double>(vcpu.known)) : 0;
}

Placer::Unseen Placer::UnseenIn(TscRange range) const {
  Unseen unseen;
  losses_.ForEach(range, timeline_.now(),
                  [&unseen](TscRange part) { unseen.lost += part.Length(); });
  unseen.ended = range.end - std::max(range.begin, losses_.ended());
  return unseen;
}

Placer::Candidates Placer::FindCandidates(const Vcpu& vcpu, const VcpuTrack& track, Mode mode,
                                          TscRange bracket, size_t samples) {
  Candidates found;
  found.when = bracket;
  stretches_.clear();
  bool known = false;
  const double part_of_lost = PartOfLost(vcpu, mode);
  const auto add = [&](const Piece& piece, TscRange part) {
    if (!Agrees(mode, piece.context.kind)) return;
    auto length = static_cast<double>(part.Length());
    Cycles in_run = part.Length();
    if (piece.context.kind == ContextKind::kLost) {
      const Unseen unseen = UnseenIn(part);
      // Where nothing at all is known of such time, it still is the only place there is.
      const double counts = unseen.lost > 0 && part_of_lost == 0 ? 1 : part_of_lost;
      length = counts * static_cast<double>(std::min(part.Length(), unseen.lost + unseen.ended));
      in_run = static_cast<Cycles>(std::ceil(counts * static_cast<double>(unseen.lost)));
    }
    if (in_run > 0) {
      known = true;
      AddRun(found.runs, ClusterOf(piece.run, piece.context.kind, bracket), in_run);
    }
    if (length <= 0) return;
    const size_t place =
        AddWeight(found.places, {piece.context, piece.context, piece.pcpu, length});
    stretches_.push_back({place, length});
  };
  vcpu.pieces.ForEach(bracket, add);
  ForEachOpen(track, [&](const Piece& open) {
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
  const double all =
      std::accumulate(stretches_.begin(), stretches_.end(), 0.0,
                      [](double sum, const Stretch& stretch) { return sum + stretch.length; });
  const double slot_length = all / static_cast<double>(kRankSlots);
  weights_.assign(found.places.size() * kMostRanks, 0);
  size_t slot = 0;
  double left = slot_length;  // of the slot
  for (const Stretch& stretch : stretches_) {
    double* const weights = &weights_[stretch.place * kMostRanks];
    double length = stretch.length;
    while (length > 0) {
      const bool ends_slot = length >= left && slot + 1 < kRankSlots;
      const double here = ends_slot ? left : length;
      const auto& by_rank = density[slot];
      for (size_t rank = 0; rank < kMostRanks; ++rank) weights[rank] += here * by_rank[rank];
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
      const double weight = weights_[i * kMostRanks + rank];
      if (weight <= kNoWeight * all) continue;
      found.places.push_back(unranked_[i]);
      found.places.back().weight = weight;
    }
    EndRank(found);
  }
}

Remainder Placer::WhyNowhere(const Vcpu& vcpu, const VcpuTrack& track, TscRange bracket) const {
  if (OutsideTrace(bracket)) return Remainder::kOutsideTrace;
  bool lost = false;
  bool ran = false;
  const auto look = [&](const Piece& piece, TscRange) {
    (piece.context.kind == ContextKind::kLost ? lost : ran) = true;
  };
  vcpu.pieces.ForEach(bracket, look);
  const std::optional<Piece> open = OpenPiece(track);
  if (open && !open->range.Intersect(bracket).Empty()) look(*open, bracket);
  if (lost) return Remainder::kTraceLost;
  return ran ? Remainder::kModeDisagrees : Remainder::kNotRunning;
}

uint64_t Placer::Candidates::RunAt(double part) const {
  if (runs.empty()) return 0;
  const double at = part * static_cast<double>(runs.back().until);
  const auto run = std::partition_point(runs.begin(), runs.end(), [at](const RunShare& share) {
    return static_cast<double>(share.until) <= at;
  });
  return run == runs.end() ? runs.back().number : run->number;
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
                    uint64_t run, std::span<const Place> places, TscRange when, uint64_t list) {
  ++counts_.placed[static_cast<size_t>(placement)];
  counts_.repaired += static_cast<uint64_t>(address != sample.address);
  observer_->OnPlaced({&sample, vcpu, address, placement, run, places, std::nullopt, when, list});
}

void Placer::Reject(const Sample& sample, Remainder why) {
  ++counts_.unplaced[static_cast<size_t>(why)];
  if (why == Remainder::kNotRunning || why == Remainder::kModeDisagrees) {
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
    vcpu.pieces.DropBefore(forgotten_);
    vcpu.exits.ForgetWhile([this](const ExitMark& mark) { return mark.tsc < forgotten_; });
    vcpu.stops.ForgetWhile([this](Tsc stop) { return stop < forgotten_; });
  }
  for (PieceWindow& pcpu : pcpus_) pcpu.DropBefore(forgotten_);
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
