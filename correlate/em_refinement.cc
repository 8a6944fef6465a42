#include "correlate/em_refinement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace xenoscope::correlate {
namespace {

// Steps end when at most this part of the held samples moves, or after kMaxSteps.
constexpr double kConvergence = 1e-4;
constexpr int kMaxSteps = 200;

// A place keeps at least this part of the weight that its length gives it, however unlikely the
// shares make it: the interval of the estimate says how much of a function can be there after all.
constexpr double kMinPosterior = 1e-6;

}  // namespace

uint32_t EmRefiner::ContextNumber(DomainId domain, uint16_t event, Context context) {
  const auto [at, is_new] = context_index_.try_emplace(
      {domain, event, context}, static_cast<uint32_t>(context_samples_.size()));
  if (is_new) context_samples_.push_back(0);
  return at->second;
}

uint32_t EmRefiner::ShareOf(uint32_t context, FunctionId function) {
  const auto [at, is_new] = share_index_.try_emplace(uint64_t{context} << 32 | function.value,
                                                     static_cast<uint32_t>(shares_.size()));
  if (is_new) shares_.push_back({.context = context});
  return at->second;
}

uint32_t EmRefiner::PlaceNumber(const Place& place) {
  const uint32_t pcpu = options_.by_pcpu ? place.pcpu.value : 0;
  return place_index_
      .try_emplace({Distinguished(place.context), pcpu, place.to},
                   static_cast<uint32_t>(place_index_.size()))
      .first->second;
}

const EmRefiner::PlaceList& EmRefiner::PlaceListOf(const PlacedSample& placed) {
  PlaceList& last = last_place_lists_.at(static_cast<size_t>(placed.mode()));
  if (placed.list != 0 && placed.list == last.number) return last;
  last = {placed.list, static_cast<uint32_t>(places_.size()),
          static_cast<uint32_t>(placed.places.size())};
  places_.insert(places_.end(), placed.places.begin(), placed.places.end());
  for (const Place& place : placed.places) place_numbers_.push_back(PlaceNumber(place));
  return last;
}

EmRefiner::Kind EmRefiner::KindOf(const PlacedSample& placed, FunctionId function) const {
  Kind kind{.vcpu = placed.vcpu,
            .function = function,
            .event = placed.sample->event,
            .mode = placed.mode(),
            .process = {}};
  if (options_.by_address) kind.address = placed.address;
  if (options_.by_process) kind.process = placed.sample->space;
  if (options_.by_placing) kind.placing = placed.placement;
  return kind;
}

uint32_t EmRefiner::KindNumber(const Kind& kind) {
  const uint64_t mixed = kind.function.value + 31 * kind.vcpu.domain.value +
                         7 * kind.vcpu.vcpu.value + kind.address + 3 * kind.process.value +
                         uint64_t{17} * kind.event;
  const uint32_t number = kind_numbers_.Intern(kind, mixed);
  if (number == kinds_.size()) kinds_.emplace_back();
  return number;
}

uint32_t EmRefiner::PartOf(const Kind& kind, Parts& parts, uint32_t number, const Place& place) {
  const auto known = std::ranges::find(parts.numbers, number);
  if (known != parts.numbers.end()) return static_cast<uint32_t>(known - parts.numbers.begin());
  parts.numbers.push_back(number);
  parts.places.push_back(place);
  parts.shares.push_back(ShareOf(
      ContextNumber(kind.vcpu.domain, kind.event, Distinguished(place.context)), kind.function));
  return static_cast<uint32_t>(parts.numbers.size() - 1);
}

void EmRefiner::OnPlaced(const PlacedSample& placed) {
  const FunctionId id = FunctionOf(placed, resolver_);
  const Kind kind = KindOf(placed, id);
  const uint32_t kind_number = KindNumber(kind);
  Parts& parts = kinds_[kind_number];
  samples_ += placed.count;
  if (placed.list != 0 && placed.list == parts.list &&
      placed.cluster == pending_[parts.pending].cluster && !options_.each_sample) {
    pending_[parts.pending].count += placed.count;
    return;
  }
  parts.list = placed.list;
  parts.pending = pending_.size();
  PendingSample& pending = pending_.emplace_back();
  pending.sample = *placed.sample;
  pending.vcpu = placed.vcpu;
  pending.address = placed.address;
  pending.placement = placed.placement;
  pending.cluster = placed.cluster;
  pending.when = placed.when;
  pending.function = id;
  pending.count = placed.count;
  pending.kind = kind_number;
  const PlaceList& list = PlaceListOf(placed);
  pending.first_place = list.first;
  pending.first_link = static_cast<uint32_t>(links_.size());
  pending.places = list.size;
  for (uint32_t i = 0; i < list.size; ++i) {
    const Place& place = placed.places[i];
    const uint32_t part = PartOf(kind, parts, place_numbers_[list.first + i], place);
    links_.push_back({place.weight, parts.shares[part], part});
  }
  if (pending_.size() >= options_.max_pending) Flush();
}

void EmRefiner::InitialiseByLengths() {
  open_.clear();
  for (const uint32_t index : order_) {
    const PendingSample& pending = pending_[index];
    const auto samples = static_cast<double>(pending.count);
    const std::span<const Link> links = LinksOf(pending);
    if (links.size() == 1) {
      shares_[links[0].share].certain += samples;
    } else {
      open_.push_back({samples, pending.first_link, pending.places});
    }
    for (const Link& link : links) {
      shares_[link.share].current += link.length * samples;
      context_samples_[shares_[link.share].context] += link.length * samples;
    }
  }
}

void EmRefiner::UpdateContextShares() {
  context_share_.resize(shares_.size());
  for (size_t i = 0; i < shares_.size(); ++i) {
    const double all = context_samples_[shares_[i].context];
    context_share_[i] = all > 0 ? shares_[i].current / all : 0;
  }
}

double EmRefiner::EmStep() {
  next_counts_.resize(shares_.size());
  for (size_t i = 0; i < shares_.size(); ++i)
    next_counts_[i] = shares_[i].prior + shares_[i].certain;
  for (const UncertainSample& open : open_) {
    const std::span<const Link> links = LinksOf(open);
    double sum = 0;
    for (const Link& link : links) sum += WeightOf(link);
    const double scale = sum > 0 ? open.samples / sum : 0;
    for (const Link& link : links) {
      next_counts_[link.share] += sum > 0 ? WeightOf(link) * scale : link.length * open.samples;
    }
  }
  double moved = 0;
  std::ranges::fill(context_samples_, 0);
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    moved += std::abs(next_counts_[i] - share.current);
    share.current = next_counts_[i];
    context_samples_[share.context] += share.current;
  }
  UpdateContextShares();
  return moved / 2;
}

void EmRefiner::ComputePosterior(const PendingSample& pending) {
  const std::span<const Link> links = LinksOf(pending);
  const size_t parts = kinds_[pending.kind].places.size();
  lengths_.assign(parts, 0);
  expected_.assign(parts, 0);
  weights_.resize(links.size());
  double all = 0;
  for (const Link& link : links) all += WeightOf(link);
  double sum = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    const double expected = all > 0 ? WeightOf(links[i]) / all : 0;
    sum += weights_[i] = std::max(expected, kMinPosterior * links[i].length);
  }
  for (size_t i = 0; i < links.size(); ++i) {
    weights_[i] /= sum;
    lengths_[links[i].part] += links[i].length;
    expected_[links[i].part] += weights_[i];
  }
}

void EmRefiner::GatherInfluence() {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].influence.Begin(kinds_[i].places.size(), static_cast<uint32_t>(i));
  }
  for (const uint32_t index : order_) {
    const PendingSample& pending = pending_[index];
    if (IsCertain(pending)) continue;
    ComputePosterior(pending);
    kinds_[pending.kind].influence.Add(lengths_, expected_, pending.count);
  }
  for (Parts& kind : kinds_) kind.influence.Conclude();
}

void EmRefiner::Weigh(const PendingSample& pending) {
  if (IsCertain(pending)) {
    weighed_.assign(1, PlacesOf(pending)[0]);
    weighed_[0].weight = 1;
    return;
  }
  ComputePosterior(pending);
  Parts& kind = kinds_[pending.kind];
  influence_ = expected_;
  kind.influence.Weigh(influence_, pending.count);
  // The weight of a part is divided among its places.
  const std::span<const Place> places = PlacesOf(pending);
  const std::span<const Link> links = LinksOf(pending);
  weighed_.assign(places.begin(), places.end());
  for (size_t i = 0; i < links.size(); ++i) {
    const uint32_t part = links[i].part;
    const double all = expected_[part];
    weighed_[i].weight = all > 0 ? influence_[part] * weights_[i] / all : 0;
  }
  for (size_t i = 0; i < influence_.size(); ++i) {
    if (expected_[i] > 0 || influence_[i] == 0) continue;
    Place& place = weighed_.emplace_back(kind.places[i]);
    place.weight = influence_[i];
    place.length = 0;
  }
}

void EmRefiner::OrderByVcpu() {
  order_.clear();
  order_.reserve(pending_.size());
  if (options_.each_sample) {
    order_.resize(pending_.size());
    std::iota(order_.begin(), order_.end(), uint32_t{0});
    return;
  }
  std::map<VcpuRef, std::vector<uint32_t>> by_vcpu;
  std::vector<uint32_t>* of_vcpu = nullptr;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (i == 0 || pending_[i].vcpu != pending_[i - 1].vcpu) of_vcpu = &by_vcpu[pending_[i].vcpu];
    of_vcpu->push_back(static_cast<uint32_t>(i));
  }
  for (const auto& [vcpu, indices] : by_vcpu) {
    order_.insert(order_.end(), indices.begin(), indices.end());
  }
}

void EmRefiner::Flush() {
  OrderByVcpu();
  InitialiseByLengths();
  UpdateContextShares();
  const double converged = kConvergence * static_cast<double>(samples_);
  for (int step = 0; step < kMaxSteps && EmStep() > converged; ++step) {
  }
  GatherInfluence();
  for (const uint32_t index : order_) {
    const PendingSample& pending = pending_[index];
    Weigh(pending);
    next_.OnPlaced({
        .sample = &pending.sample,
        .vcpu = pending.vcpu,
        .address = pending.address,
        .placement = pending.placement,
        .cluster = pending.cluster,
        .places = weighed_,
        .function = pending.function,
        .when = pending.when,
        .count = pending.count,
    });
  }
  for (Share& share : shares_) {
    share.prior = share.current;
    share.certain = 0;
  }
  pending_.clear();
  samples_ = 0;
  links_.clear();
  places_.clear();
  place_numbers_.clear();
  last_place_lists_ = {};
  kinds_.clear();
  kind_numbers_.Clear();
}

}  // namespace xenoscope::correlate
