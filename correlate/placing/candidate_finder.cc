#include "correlate/placing/candidate_finder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "base/error.h"

namespace xenoscope::correlate {
namespace {

constexpr double kWeightTolerance = 1e-6;
// Transitions are not as long as so many mean ones.
constexpr double kTransitionReach = 8;

// Returns the part of a stay in a guest, in cycles, that can be its transitions, which take
// `cycles` at its begin and end: half of what lies so near to either of them.
double TransitionIn(TscRange stay, TscRange part, double cycles) {
  const auto near = std::min(stay.Length(), static_cast<Cycles>(std::ceil(cycles)));
  const Cycles entry = part.Intersect({stay.begin, stay.begin + near}).Length();
  const Cycles exit = part.Intersect({Tsc{stay.end.value - near}, stay.end}).Length();
  return static_cast<double>(entry + exit) / 2;
}

double SumOfWeights(std::span<const Place> places) {
  return std::accumulate(places.begin(), places.end(), 0.0,
                         [](double sum, const Place& place) { return sum + place.weight; });
}

// Returns the part of the weights that is in lost time; 0 if all of them are 0.
double PartInLost(std::span<const Place> places) {
  double in_lost = 0;
  for (const Place& place : places) {
    if (place.context.kind == ContextKind::kLost) in_lost += place.weight;
  }
  return in_lost > 0 ? in_lost / SumOfWeights(places) : 0;
}

}  // namespace

Candidates CandidateFinder::FindIntervals(const VcpuTrack& track, Mode mode, TscRange bracket,
                                          size_t samples) {
  Candidates found;
  found.when = bracket;
  intervals_.clear();
  bool known = false;
  const VcpuHistory& vcpu = timeline_.HistoryOf(track);
  const auto add = [&](const TimelineInterval& interval, TscRange part) {
    // Samples in its second half, which are of the vCPU that starts, count elsewhere (method.md
    // §4.5).
    if (IsSwitchTo(interval, track.ref)) return;
    if (Agrees(mode, interval.context.kind)) {
      const double part_of_lost = interval.context.kind == ContextKind::kLost
                                      ? vcpu.PartOfLost(mode, timeline_.sample_rate())
                                      : 0;
      known |= AddInterval(interval, part, part_of_lost, track.ref, found);
    } else if (interval.context.kind == ContextKind::kGuest) {
      known |= AddTransition(interval, part, found);
    }
  };
  vcpu.intervals.ForEach(bracket, add);
  timeline_.ForEachOpen(track, [&](const TimelineInterval& open) {
    const TscRange part = open.range.Intersect(bracket);
    if (!part.Empty()) add(open, part);
  });
  if (!known) return found;
  found.in_lost = PartInLost(found.places);
  if (samples == 1 || found.places.size() == 1) {
    EndRank(found);
  } else {
    WeighByRank(samples, found);
  }
  return found;
}

Candidates CandidateFinder::FindClocked(const VcpuTrack& track, const ClockedTime& time) {
  Candidates found;
  found.when = time.when;
  std::optional<TimelineInterval> last;
  const auto add = [&](const TimelineInterval& interval) {
    if (last) AddClocked(*last, IsRecordBetween(*last, interval), time, track.ref, found);
    last = interval;
  };
  const TscRange until_record{time.when.begin, time.when.end + time.handler};
  timeline_.HistoryOf(track).intervals.ForEach(
      until_record, [&](const TimelineInterval& interval, TscRange) { add(interval); });
  timeline_.ForEachOpen(track, [&](const TimelineInterval& open) {
    if (!open.range.Intersect(until_record).Empty()) add(open);
  });
  if (last) AddClocked(*last, true, time, track.ref, found);
  if (!found.places.empty()) EndRank(found);
  return found;
}

void CandidateFinder::AddClocked(const TimelineInterval& interval, bool ends,
                                 const ClockedTime& time, VcpuRef vcpu, Candidates& found) {
  const ContextKind kind = interval.context.kind;
  TscRange range = interval.range;
  if (ends) range.end = Tsc{range.end.value - std::min(range.Length(), time.handler)};
  const TscRange part = range.Intersect(time.when);
  if (part.Empty() || kind == ContextKind::kLost || IsSwitchTo(interval, vcpu)) return;
  Place place{interval.context, interval.pcpu, static_cast<double>(part.Length())};
  if (interval.vcpu != vcpu) place.to = interval.vcpu;
  if (kind == ContextKind::kGuest) {
    // Xen is in a guest's stay at its begin and end only.
    const double reach = kTransitionReach * timeline_.cycles_per_transition();
    const Cycles nearest = std::min(part.begin - range.begin, range.end - part.end);
    if (static_cast<double>(nearest) > reach) return;
    place.context = TransitionOf(interval.context);
  }
  found.AddToCluster(ClusterOf(interval.timeslice_id, place.context.kind, found.when),
                     part.Length());
  found.AddWeight(place);
}

bool CandidateFinder::AddInterval(const TimelineInterval& interval, TscRange part,
                                  double part_of_lost, VcpuRef vcpu, Candidates& found) {
  auto length = static_cast<double>(part.Length());
  Cycles in_cluster = part.Length();
  if (interval.context.kind == ContextKind::kLost) {
    const UnobservedTime unseen = timeline_.UnobservedTimeIn(part);
    // Where nothing at all is known of such time, it still is the only place there is.
    const double counts = unseen.lost > 0 && part_of_lost == 0 ? 1 : part_of_lost;
    length = counts * static_cast<double>(std::min(part.Length(), unseen.lost + unseen.ended));
    in_cluster = static_cast<Cycles>(std::ceil(counts * static_cast<double>(unseen.lost)));
  }
  if (in_cluster > 0) {
    found.AddToCluster(ClusterOf(interval.timeslice_id, interval.context.kind, found.when),
                       in_cluster);
  }
  if (length > 0) {
    Place place{interval.context, interval.pcpu, length};
    if (interval.vcpu != vcpu) place.to = interval.vcpu;
    const size_t number = found.AddWeight(place);
    intervals_.push_back({number, length});
  }
  return in_cluster > 0;
}

bool CandidateFinder::AddTransition(const TimelineInterval& interval, TscRange part,
                                    Candidates& found) {
  const double length = TransitionIn(interval.range, part, timeline_.cycles_per_transition());
  if (length <= 0) return false;
  const Context context = TransitionOf(interval.context);
  found.AddToCluster(ClusterOf(interval.timeslice_id, context.kind, found.when),
                     static_cast<Cycles>(std::ceil(length)));
  intervals_.push_back({found.AddWeight({context, interval.pcpu, length}), length});
  return true;
}

void CandidateFinder::WeighByRank(size_t samples, Candidates& found) {
  rank_weights_.Weigh(intervals_, found.places.size(), samples);
  unranked_.swap(found.places);
  found.places.clear();
  const size_t ranks = RanksOf(samples);
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < unranked_.size(); ++i) {
      if (!rank_weights_.Matters(i, rank)) continue;
      found.places.push_back(unranked_[i]);
      found.places.back().weight = rank_weights_.At(i, rank);
    }
    EndRank(found);
  }
}

Candidates CandidateFinder::FindExits(const VcpuTrack& track, const recording::Sample& sample,
                                      TscRange bracket) {
  Candidates found;
  found.when = bracket;
  MatchQuality best = MatchQuality::kWeak;
  const VcpuHistory& vcpu = timeline_.HistoryOf(track);
  // The NMI came just before the exit's record: an exit at the bracket's end is a candidate too.
  for (auto mark = vcpu.FirstExitSince(bracket.begin);
       mark != vcpu.exits.end() && mark->tsc <= bracket.end; ++mark) {
    const MatchQuality quality = MatchQualityOf(*mark, {sample.address, sample.mode}, logged_rip_);
    if (mark->nmi || quality < best) continue;
    if (quality > best) {
      best = quality;
      found.places.clear();
      found.clusters.clear();
    }
    const Context transition = TransitionOf(GuestBefore(*mark));
    found.AddWeight({transition, mark->pcpu, 1});
    found.AddToCluster(ClusterOf(mark->timeslice_id, mark->context.kind, bracket), 1);
  }
  if (!found.places.empty()) EndRank(found);
  return found;
}

void CandidateFinder::EndRank(Candidates& found) {
  const std::span<Place> places =
      std::span(found.places).subspan(found.ranks == 0 ? 0 : found.ends[found.ranks - 1]);
  const double all = SumOfWeights(places);
  for (Place& place : places) place.length = place.weight /= all;
  const double normalised = SumOfWeights(places);
  if (!(std::abs(normalised - 1) <= kWeightTolerance) && status_.ok()) {
    status_ = InternalError("the places of a sample weigh {} and not 1", normalised);
  }
  found.ends[found.ranks++] = static_cast<uint32_t>(found.places.size());
  ++lists_;
  if (found.ranks == 1) found.first_list = lists_;
}

}  // namespace xenoscope::correlate
