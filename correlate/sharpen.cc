#include "correlate/sharpen.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace xenoscope::correlate {
namespace {

// Steps end when no more than this part of the held samples moves, or after so many.
constexpr double kSettled = 1e-4;
constexpr int kMostSteps = 200;

// A place keeps this part of what its length says, however unlikely the shares make it: how much
// of a function can be there after all is a matter of its interval.
constexpr double kUnlikely = 1e-6;

}  // namespace

uint32_t Sharpener::ContextNumber(DomainId domain, Context context) {
  const auto [at, is_new] =
      context_index_.try_emplace({domain, context}, static_cast<uint32_t>(context_samples_.size()));
  if (is_new) context_samples_.push_back(0);
  return at->second;
}

uint32_t Sharpener::ShareOf(uint32_t context, FunctionId function) {
  const auto [at, is_new] = share_index_.try_emplace(uint64_t{context} << 32 | function.value,
                                                     static_cast<uint32_t>(shares_.size()));
  if (is_new) shares_.push_back({.context = context});
  return at->second;
}

const Sharpener::List& Sharpener::ListOf(const PlacedSample& placed) {
  List& last = last_lists_.at(static_cast<size_t>(placed.sample->mode));
  const DomainId domain = placed.vcpu.domain;
  if (placed.list != 0 && placed.list == last.number) return last;
  last = {placed.list, static_cast<uint32_t>(places_.size()),
          static_cast<uint32_t>(placed.places.size())};
  places_.insert(places_.end(), placed.places.begin(), placed.places.end());
  for (const Place& place : placed.places)
    contexts_.push_back(ContextNumber(domain, place.stratum));
  return last;
}

uint32_t Sharpener::KindOf(const PlacedSample& placed, FunctionId function) {
  Kind kind{placed.vcpu, function, placed.sample->mode, 0, {}, Placement::kBracketed};
  if (options_.by_address) kind.address = placed.address;
  if (options_.by_process) kind.process = placed.sample->space;
  if (options_.by_placing) kind.placing = placed.placement;
  const auto [at, is_new] = kind_index_.try_emplace(kind, static_cast<uint32_t>(kinds_.size()));
  if (is_new) kinds_.emplace_back();
  return at->second;
}

uint32_t Sharpener::PartOf(Parts& kind, const Place& place) const {
  const auto known = std::ranges::find_if(kind.places, [&](const Place& other) {
    return other.context == place.context && other.stratum == place.stratum &&
           (!options_.by_pcpu || other.pcpu == place.pcpu);
  });
  if (known == kind.places.end()) {
    kind.places.push_back(place);
    return static_cast<uint32_t>(kind.places.size() - 1);
  }
  return static_cast<uint32_t>(known - kind.places.begin());
}

void Sharpener::OnPlaced(const PlacedSample& placed) {
  const FunctionId id = FunctionOf(placed, resolver_);
  Held& held = held_.emplace_back();
  held.sample = *placed.sample;
  held.vcpu = placed.vcpu;
  held.address = placed.address;
  held.placement = placed.placement;
  held.run = placed.run;
  held.when = placed.when;
  held.function = id;
  held.kind = KindOf(placed, id);
  const List& list = ListOf(placed);
  held.first_place = list.first;
  held.first_link = static_cast<uint32_t>(links_.size());
  held.places = list.size;
  for (uint32_t i = 0; i < list.size; ++i) {
    const Place& place = placed.places[i];
    const uint32_t context = contexts_[list.first + i];
    const uint32_t share = ShareOf(context, id);
    links_.push_back({place.weight, share, PartOf(kinds_[held.kind], place)});
    shares_[share].now += place.weight;
    context_samples_[context] += place.weight;
  }
  if (held_.size() >= options_.most_held) GiveAll();
}

void Sharpener::TakeParts() {
  for (Share& share : shares_) {
    const double all = context_samples_[share.context];
    share.part = all > 0 ? share.now / all : 0;
  }
}

double Sharpener::Step() {
  for (Share& share : shares_) share.next = share.learnt;
  for (const Held& held : held_) {
    const std::span<const Link> links = LinksOf(held);
    if (links.size() == 1) {
      shares_[links[0].share].next += 1;
      continue;
    }
    double sum = 0;
    for (const Link& link : links) sum += WeightOf(link);
    const double scale = sum > 0 ? 1 / sum : 0;
    for (const Link& link : links) {
      shares_[link.share].next += sum > 0 ? WeightOf(link) * scale : link.length;
    }
  }
  double moved = 0;
  std::ranges::fill(context_samples_, 0);
  for (Share& share : shares_) {
    moved += std::abs(share.next - share.now);
    share.now = share.next;
    context_samples_[share.context] += share.now;
  }
  TakeParts();
  return moved / 2;
}

void Sharpener::Expect(const Held& held) {
  const std::span<const Link> links = LinksOf(held);
  const size_t parts = kinds_[held.kind].places.size();
  lengths_.assign(parts, 0);
  expected_.assign(parts, 0);
  weights_.resize(links.size());
  double all = 0;
  for (const Link& link : links) all += WeightOf(link);
  double sum = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    const double expected = all > 0 ? WeightOf(links[i]) / all : 0;
    sum += weights_[i] = std::max(expected, kUnlikely * links[i].length);
  }
  for (size_t i = 0; i < links.size(); ++i) {
    weights_[i] /= sum;
    lengths_[links[i].part] += links[i].length;
    expected_[links[i].part] += weights_[i];
  }
}

void Sharpener::GatherInfluence() {
  for (Parts& kind : kinds_) kind.influence.Begin(kind.places.size());
  for (const Held& held : held_) {
    Expect(held);
    kinds_[held.kind].influence.Add(lengths_, expected_);
  }
  for (Parts& kind : kinds_) kind.influence.Conclude();
}

void Sharpener::Weigh(const Held& held) {
  Expect(held);
  Parts& kind = kinds_[held.kind];
  influence_ = expected_;
  kind.influence.Weigh(influence_);
  // Places of a part divide among them what it has.
  const std::span<const Place> places = PlacesOf(held);
  const std::span<const Link> links = LinksOf(held);
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
  }
}

void Sharpener::GiveAll() {
  TakeParts();
  const double settled = kSettled * static_cast<double>(held_.size());
  for (int step = 0; step < kMostSteps && Step() > settled; ++step) {
  }
  GatherInfluence();
  for (const Held& held : held_) {
    Weigh(held);
    next_.OnPlaced({&held.sample, held.vcpu, held.address, held.placement, held.run, weighed_,
                    held.function, held.when});
  }
  for (Share& share : shares_) share.learnt = share.now;
  held_.clear();
  links_.clear();
  places_.clear();
  contexts_.clear();
  last_lists_ = {};
  kinds_.clear();
  kind_index_.clear();
}

}  // namespace xenoscope::correlate
