#include "correlate/sharpen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace xenoscope::correlate {
namespace {

// Steps end when no more than this part of the held samples moves, or after so many.
constexpr double kSettled = 1e-4;
constexpr int kMostSteps = 200;

// A sample is not in places that are so much less likely than its likeliest: a row for each would
// say nothing.
constexpr double kNegligible = 1e-3;

// Added to the information as this part of the samples, as if one knew where they were: where
// nothing tells two places apart, the variance stays finite.
constexpr double kRidge = 0.01;

// The lower Cholesky factor of a symmetric positive definite square, in place. O(n^3).
void Factor(std::vector<double>& square, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = j; i < n; ++i) {
      double sum = square[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= square[i * n + k] * square[j * n + k];
      if (i == j) {
        square[j * n + j] = std::sqrt(std::max(sum, std::numeric_limits<double>::min()));
      } else {
        square[i * n + j] = sum / square[j * n + j];
      }
    }
  }
}

// Solves L L' x = b; `x` is b before and the solution after. O(n^2).
void Solve(const std::vector<double>& factor, std::vector<double>& x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= factor[i * n + k] * x[k];
    x[i] /= factor[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) x[i] -= factor[k * n + i] * x[k];
    x[i] /= factor[i * n + i];
  }
}

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
  const std::span<const Place> places = PlacesOf(held);
  const std::span<const Link> links = LinksOf(held);
  weighed_.assign(places.begin(), places.end());
  double all = 0;
  for (const Link& link : links) all += WeightOf(link);
  double most = 0;
  double sum = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    if (all > 0) weighed_[i].weight = WeightOf(links[i]) / all;
    most = std::max(most, weighed_[i].weight);
  }
  for (Place& place : weighed_) {
    if (place.weight < kNegligible * most) place.weight = 0;
    sum += place.weight;
  }
  by_part_.assign(kinds_[held.kind].places.size(), 0);
  for (size_t i = 0; i < links.size(); ++i) {
    weighed_[i].weight /= sum;
    by_part_[links[i].part] += weighed_[i].weight;
  }
}

void Sharpener::GatherInformation() {
  for (Parts& kind : kinds_) {
    const size_t n = kind.places.size();
    kind.samples.assign(n, 0);
    kind.information.assign(n * n, 0);
  }
  for (const Held& held : held_) {
    Expect(held);
    Parts& kind = kinds_[held.kind];
    const size_t n = by_part_.size();
    for (size_t i = 0; i < n; ++i) {
      if (by_part_[i] == 0) continue;
      kind.samples[i] += by_part_[i];
      for (size_t j = 0; j < n; ++j) kind.information[i * n + j] += by_part_[i] * by_part_[j];
    }
  }
  for (Parts& kind : kinds_) {
    const size_t n = kind.places.size();
    for (size_t i = 0; i < n; ++i) {
      // A part without samples has no influence, and suffers none.
      double& own = kind.information[i * n + i];
      own = kind.samples[i] > 0 ? own + kRidge * kind.samples[i] : 1;
    }
    Factor(kind.information, n);
  }
}

void Sharpener::Influence(const Held& held) {
  const Parts& kind = kinds_[held.kind];
  if (kind.places.size() == 1) return;
  std::vector<double> influence = by_part_;
  Solve(kind.information, influence);
  for (size_t i = 0; i < influence.size(); ++i) {
    influence[i] *= (1 + kRidge) * kind.samples[i];
  }
  // Places of a part divide among them what it has.
  const std::span<const Link> links = LinksOf(held);
  for (size_t i = 0; i < links.size(); ++i) {
    const double all = by_part_[links[i].part];
    weighed_[i].weight = all > 0 ? influence[links[i].part] * weighed_[i].weight / all : 0;
  }
  for (size_t i = 0; i < influence.size(); ++i) {
    if (by_part_[i] > 0 || influence[i] == 0) continue;
    Place& place = weighed_.emplace_back(kind.places[i]);
    place.weight = influence[i];
  }
}

void Sharpener::GiveAll() {
  TakeParts();
  const double settled = kSettled * static_cast<double>(held_.size());
  for (int step = 0; step < kMostSteps && Step() > settled; ++step) {
  }
  GatherInformation();
  for (const Held& held : held_) {
    Expect(held);
    Influence(held);
    std::erase_if(weighed_, [](const Place& place) { return place.weight == 0; });
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
