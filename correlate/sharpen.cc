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

uint32_t Sharpener::PlaceNumber(const Place& place) {
  const uint32_t pcpu = options_.by_pcpu ? place.pcpu.value : 0;
  return place_index_
      .try_emplace({place.context, place.stratum, pcpu}, static_cast<uint32_t>(place_index_.size()))
      .first->second;
}

const Sharpener::List& Sharpener::ListOf(const PlacedSample& placed) {
  List& last = last_lists_.at(static_cast<size_t>(placed.sample->mode));
  if (placed.list != 0 && placed.list == last.number) return last;
  last = {placed.list, static_cast<uint32_t>(places_.size()),
          static_cast<uint32_t>(placed.places.size())};
  places_.insert(places_.end(), placed.places.begin(), placed.places.end());
  for (const Place& place : placed.places) place_numbers_.push_back(PlaceNumber(place));
  return last;
}

Sharpener::Kind Sharpener::KindOf(const PlacedSample& placed, FunctionId function) const {
  Kind kind{placed.vcpu, function, placed.sample->mode, 0, {}, Placement::kBracketed};
  if (options_.by_address) kind.address = placed.address;
  if (options_.by_process) kind.process = placed.sample->space;
  if (options_.by_placing) kind.placing = placed.placement;
  return kind;
}

uint32_t Sharpener::KindNumber(const Kind& kind) {
  const uint64_t mixed = kind.function.value + 31 * kind.vcpu.domain.value +
                         7 * kind.vcpu.vcpu.value + kind.address + 3 * kind.process.value;
  const uint32_t number = kind_numbers_.Of(kind, mixed);
  if (number == kinds_.size()) kinds_.emplace_back();
  return number;
}

uint32_t Sharpener::PartOf(const Kind& kind, Parts& parts, uint32_t number, const Place& place) {
  const auto known = std::ranges::find(parts.numbers, number);
  if (known != parts.numbers.end()) return static_cast<uint32_t>(known - parts.numbers.begin());
  parts.numbers.push_back(number);
  parts.places.push_back(place);
  parts.shares.push_back(ShareOf(ContextNumber(kind.vcpu.domain, place.stratum), kind.function));
  return static_cast<uint32_t>(parts.numbers.size() - 1);
}

void Sharpener::OnPlaced(const PlacedSample& placed) {
  const FunctionId id = FunctionOf(placed, resolver_);
  const Kind kind = KindOf(placed, id);
  const uint32_t kind_number = KindNumber(kind);
  Parts& parts = kinds_[kind_number];
  samples_ += placed.count;
  if (placed.list != 0 && placed.list == parts.list && placed.run == held_[parts.held].run &&
      !options_.each_sample) {
    held_[parts.held].count += placed.count;
    return;
  }
  parts.list = placed.list;
  parts.held = held_.size();
  Held& held = held_.emplace_back();
  held.sample = *placed.sample;
  held.vcpu = placed.vcpu;
  held.address = placed.address;
  held.placement = placed.placement;
  held.run = placed.run;
  held.when = placed.when;
  held.function = id;
  held.count = placed.count;
  held.kind = kind_number;
  const List& list = ListOf(placed);
  held.first_place = list.first;
  held.first_link = static_cast<uint32_t>(links_.size());
  held.places = list.size;
  for (uint32_t i = 0; i < list.size; ++i) {
    const Place& place = placed.places[i];
    const uint32_t part = PartOf(kind, parts, place_numbers_[list.first + i], place);
    links_.push_back({place.weight, parts.shares[part], part});
  }
  if (held_.size() >= options_.most_held) GiveAll();
}

void Sharpener::ExpectByLengths() {
  open_.clear();
  for (const Held& held : held_) {
    const auto samples = static_cast<double>(held.count);
    const std::span<const Link> links = LinksOf(held);
    if (links.size() == 1) {
      shares_[links[0].share].certain += samples;
    } else {
      open_.push_back({samples, held.first_link, held.places});
    }
    for (const Link& link : links) {
      shares_[link.share].now += link.length * samples;
      context_samples_[shares_[link.share].context] += link.length * samples;
    }
  }
}

void Sharpener::TakeParts() {
  part_.resize(shares_.size());
  for (size_t i = 0; i < shares_.size(); ++i) {
    const double all = context_samples_[shares_[i].context];
    part_[i] = all > 0 ? shares_[i].now / all : 0;
  }
}

double Sharpener::Step() {
  stepped_.resize(shares_.size());
  for (size_t i = 0; i < shares_.size(); ++i) stepped_[i] = shares_[i].learnt + shares_[i].certain;
  for (const Open& open : open_) {
    const std::span<const Link> links = LinksOf(open);
    double sum = 0;
    for (const Link& link : links) sum += WeightOf(link);
    const double scale = sum > 0 ? open.samples / sum : 0;
    for (const Link& link : links) {
      stepped_[link.share] += sum > 0 ? WeightOf(link) * scale : link.length * open.samples;
    }
  }
  double moved = 0;
  std::ranges::fill(context_samples_, 0);
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    moved += std::abs(stepped_[i] - share.now);
    share.now = stepped_[i];
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
  for (size_t i = 0; i < kinds_.size(); ++i) {
    kinds_[i].influence.Begin(kinds_[i].places.size(), static_cast<uint32_t>(i));
  }
  for (const Held& held : held_) {
    if (IsCertain(held)) continue;
    Expect(held);
    kinds_[held.kind].influence.Add(lengths_, expected_, held.count);
  }
  for (Parts& kind : kinds_) kind.influence.Conclude();
}

void Sharpener::Weigh(const Held& held) {
  if (IsCertain(held)) {
    weighed_.assign(1, PlacesOf(held)[0]);
    weighed_[0].weight = 1;
    return;
  }
  Expect(held);
  Parts& kind = kinds_[held.kind];
  influence_ = expected_;
  kind.influence.Weigh(influence_, held.count);
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
    place.length = 0;
  }
}

void Sharpener::GiveAll() {
  ExpectByLengths();
  TakeParts();
  const double settled = kSettled * static_cast<double>(samples_);
  for (int step = 0; step < kMostSteps && Step() > settled; ++step) {
  }
  GatherInfluence();
  for (const Held& held : held_) {
    Weigh(held);
    next_.OnPlaced({&held.sample, held.vcpu, held.address, held.placement, held.run, weighed_,
                    held.function, held.when, 0, held.count});
  }
  for (Share& share : shares_) {
    share.learnt = share.now;
    share.certain = 0;
  }
  held_.clear();
  samples_ = 0;
  links_.clear();
  places_.clear();
  place_numbers_.clear();
  last_lists_ = {};
  kinds_.clear();
  kind_numbers_.Clear();
}

}  // namespace xenoscope::correlate
