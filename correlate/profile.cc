#include "correlate/profile.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace xenoscope::correlate {
namespace {

// Standard errors by which sampled and traced share may differ: one false alarm in some hundreds.
constexpr double kDisagreement = 3;
// ... and never less than this: the trace's own records take time that nobody accounts for.
constexpr double kMinDisagreement = 0.01;

// Odd, and of bits that look random: multiplied by it, the upper half depends on all of a number.
constexpr uint64_t kMixing = 0x9e3779b97f4a7c15;

constexpr uint64_t Pack(Context context) {
  return uint64_t{static_cast<uint8_t>(context.kind)} << 33 | uint64_t{context.nested} << 32 |
         context.reason;
}

constexpr Context UnpackContext(uint64_t packed) {
  return {static_cast<ContextKind>(packed >> 33), (packed >> 32 & 1) != 0,
          static_cast<uint32_t>(packed)};
}

// Numbers are of 52 bits, as physical addresses are, or kNoVector.
constexpr int kExitKindShift = 56;
constexpr uint64_t kNumberMask = (uint64_t{1} << kExitKindShift) - 1;

constexpr uint64_t PackSubreason(Context context) {
  return uint64_t{static_cast<uint8_t>(context.exit_kind)} << kExitKindShift |
         (context.number & kNumberMask);
}

constexpr void UnpackSubreason(uint64_t packed, Context& context) {
  context.exit_kind = static_cast<ExitKind>(packed >> kExitKindShift);
  context.number = packed & kNumberMask;
  if (context.number == (kNoVector & kNumberMask)) context.number = kNoVector;
}

double CountOf(const PlacedSample& placed) { return static_cast<double>(placed.count); }

}  // namespace

bool DomainCheck::Agrees() const {
  return std::abs(sampled - traced) <= std::max(kDisagreement * error, kMinDisagreement);
}

Profile::Profile(ProfileOptions options, Resolver& resolver)
    : options_(std::move(options)),
      resolver_(&resolver),
      stacks_(std::ranges::find(options_.by, Dimension::kAddress) != options_.by.end(),
              options_.inlined_at) {
  for (const Dimension dimension : options_.by) {
    std::optional<size_t>& place = places_.at(static_cast<size_t>(dimension));
    if (!place) place = keys_++;
  }
  for (const Dimension dimension : {Dimension::kExit, Dimension::kSubreason, Dimension::kWaiting,
                                    Dimension::kWakeup, Dimension::kPcpu}) {
    by_place_ = by_place_ || Has(dimension);
  }
  has_unions_ = !Has(Dimension::kExit) && !Has(Dimension::kSubreason) &&
                !Has(Dimension::kWaiting) && !Has(Dimension::kWakeup);
}

uint32_t Profile::Rows::Find(const Key& key) {
  uint64_t mixed = 0;
  for (const uint64_t value : key) mixed = (mixed ^ value) * kMixing;
  return keys.Intern(key, mixed >> 32);
}

uint32_t Profile::Rows::PartOf(uint32_t row, uint32_t stratum) {
  const uint64_t key = uint64_t{row} << 32 | stratum;
  const uint32_t number = part_numbers.Intern(key, key * kMixing >> 32);
  if (number == parts.size()) parts.push_back({row, stratum, StratumUnions::kNone, {}, 0, 0});
  return number;
}

uint32_t Profile::StratumOf(VcpuRef vcpu, Context context) {
  if (!options_.is_time) context = {ContextKind::kUntraced};
  if (!IsTraced(context.kind)) vcpu = {};
  const size_t mixed = context.reason + 13 * static_cast<size_t>(context.kind) +
                       29 * vcpu.vcpu.value + 37 * vcpu.domain.value + context.number;
  const uint32_t number = stratum_numbers_.Intern({vcpu, context}, mixed);
  if (number == strata_.size()) {
    if (context.kind == ContextKind::kLost) lost_stratum_ = number;
    const bool in_unions = has_unions_ && IsTraced(context.kind);
    strata_.push_back(
        {vcpu, context, {}, 0, in_unions ? unions_.AddStratum(vcpu) : StratumUnions::kNone});
  }
  return number;
}

Profile::Names Profile::NamesOf(const PlacedSample& placed) {
  const FunctionId id = FunctionOf(placed, *resolver_);
  const Function& function = resolver_->Describe(id);
  if (!function.unresolved.empty()) unresolved_[function.unresolved] += CountOf(placed);
  const auto found = names_of_function_.find(id.value);
  if (found != names_of_function_.end()) return found->second;
  const Names names{names_.Intern(function.image), names_.Intern(function.name)};
  names_of_function_[id.value] = names;
  return names;
}

uint32_t Profile::LineOf(const PlacedSample& placed) {
  const recording::Sample& sample = *placed.sample;
  const Code code{placed.vcpu.domain, sample.mode, sample.space, placed.address};
  const auto [at, is_new] = line_of_code_.try_emplace(code);
  if (is_new) at->second = names_.Intern(options_.line_of(placed));
  return at->second;
}

void Profile::OnTraced(VcpuRef vcpu, Context context, Cycles cycles) {
  if (!options_.is_time) return;
  strata_[StratumOf(vcpu, context)].size += static_cast<double>(cycles);
}

void Profile::OnUnplaced(const recording::Sample& /*sample*/, UnplacedReason /*why*/) {}

void Profile::OnPlaced(const PlacedSample& placed) {
  const double count = CountOf(placed);
  samples_ += count;
  const Mode mode = placed.sample->mode;
  Key key(keys_);
  const auto set = [&](Dimension dimension, uint64_t value) {
    if (const auto& place = places_[static_cast<size_t>(dimension)]) key[*place] = value;
  };
  set(Dimension::kDomain, placed.vcpu.domain.value);
  set(Dimension::kVcpu, placed.vcpu.vcpu.value);
  set(Dimension::kMode, static_cast<uint64_t>(mode));
  set(Dimension::kAddress, placed.address);
  set(Dimension::kProcess, placed.sample->space.value);
  set(Dimension::kPlacing, static_cast<uint64_t>(placed.placement));
  if (Has(Dimension::kImage) || Has(Dimension::kFunction)) {
    const Names names = NamesOf(placed);
    set(Dimension::kImage, names.image);
    set(Dimension::kFunction, names.function);
  }
  if (Has(Dimension::kLine)) set(Dimension::kLine, LineOf(placed));
  if (Has(Dimension::kStack)) set(Dimension::kStack, stacks_.Add(placed, *resolver_));

  Cluster& cluster = ClusterOf(placed.vcpu, placed.cluster);
  std::optional<uint32_t> row;
  for (const Place& place : placed.places) {
    if (!row || by_place_) {
      set(Dimension::kExit, Pack(place.context));
      set(Dimension::kSubreason, PackSubreason(place.context));
      set(Dimension::kWaiting, place.context.waiting);
      set(Dimension::kWakeup, place.context.wakeup);
      set(Dimension::kPcpu, place.pcpu.value);
      row = rows_.Find(key);
    }
    const uint32_t stratum = StratumOf(placed.vcpu, place.stratum);
    cluster.weights.push_back(
        {PartOf(*row, placed.vcpu, stratum), place.weight * count, place.length * count});
  }
}

Profile::Cluster& Profile::ClusterOf(VcpuRef vcpu, uint64_t number) {
  const auto [at, is_new] = clusters_.try_emplace(vcpu);
  Clusters& clusters = at->second;
  if (is_new) clusters.domain = domains_.Find({vcpu.domain.value});
  const auto known = std::ranges::find(clusters.open, number, &Cluster::number);
  if (known != clusters.open.end()) return *known;
  Cluster& oldest = *std::ranges::min_element(clusters.open, {}, &Cluster::number);
  Close(vcpu, clusters.domain, oldest);
  oldest.number = number;
  return oldest;
}

uint32_t Profile::PartOf(uint32_t row, VcpuRef vcpu, uint32_t stratum) {
  const uint32_t number = rows_.PartOf(row, stratum);
  Part& part = rows_.parts[number];
  if (part.union_number == StratumUnions::kNone &&
      strata_[stratum].of_vcpu != StratumUnions::kNone) {
    part.union_number = unions_.UnionNumber(row, vcpu);
    union_scratch_.resize(std::max<size_t>(union_scratch_.size(), part.union_number + 1));
  }
  return number;
}

// `in_cluster` of the cluster's samples in the stratum are of the part's row.
void Profile::AddCluster(Part& part, double in_cluster, double in_stratum) {
  part.sums.x += in_cluster;
  part.sums.xx += in_cluster * in_cluster;
  part.sums.xn += in_cluster * in_stratum;
}

void Profile::AddToUnions(VcpuRef vcpu) {
  strata_amounts_.clear();
  union_amounts_.clear();
  for (const uint32_t number : parts_) {
    const Part& part = rows_.parts[number];
    if (part.union_number == StratumUnions::kNone) continue;
    double& union_number = union_scratch_[part.union_number];
    if (union_number == 0) union_amounts_.push_back({part.union_number, 0});
    union_number += part.in_cluster;
    Stratum& stratum = strata_[part.stratum];
    if (stratum.length == 0) continue;  // done
    strata_amounts_.push_back({stratum.of_vcpu, std::exchange(stratum.length, 0.0)});
  }
  for (StratumUnions::Amount& amount : union_amounts_) {
    amount.samples = std::exchange(union_scratch_[amount.number], 0.0);
  }
  unions_.AddCluster(vcpu, strata_amounts_, union_amounts_);
}

void Profile::Close(VcpuRef vcpu, uint32_t domain, Cluster& cluster) {
  if (cluster.weights.empty()) return;
  ++closed_;
  double n = 0;
  for (const PlaceWeight& entry : cluster.weights) {
    Part& part = rows_.parts[entry.part];
    if (part.closing != closed_) {
      part.closing = closed_;
      parts_.push_back(entry.part);
    }
    part.in_cluster += entry.weight;
    Stratum& stratum = strata_[part.stratum];
    stratum.in_cluster += entry.weight;
    if (part.union_number != StratumUnions::kNone) stratum.length += entry.length;
    if (IsTraced(stratum.context.kind)) n += entry.weight;
  }
  cluster_squares_[vcpu.domain] += n * n;
  if (has_unions_) AddToUnions(vcpu);
  for (const uint32_t number : parts_) {
    Part& part = rows_.parts[number];
    AddCluster(part, part.in_cluster, strata_[part.stratum].in_cluster);
    part.in_cluster = 0;
  }
  for (const uint32_t number : parts_) {
    const uint32_t of = rows_.parts[number].stratum;
    Stratum& stratum = strata_[of];
    const double in_stratum = std::exchange(stratum.in_cluster, 0.0);
    if (in_stratum == 0) continue;  // done
    AddCluster(domains_.parts[domains_.PartOf(domain, of)], in_stratum, in_stratum);
    stratum.totals.n += in_stratum;
    stratum.totals.nn += in_stratum * in_stratum;
    ++stratum.totals.clusters;
  }
  parts_.clear();
  cluster.weights.clear();
}

void Profile::SizeLost(Stratum& lost, double rate, double traced_samples) {
  const double max_size = lost.size;
  const double by_samples = lost.totals.n * rate;
  lost.size = max_size > 0 ? std::min(max_size, by_samples) : by_samples;
  if (lost.totals.n <= 0 || traced_samples <= 0) return;
  const double busy = max_size > 0 ? lost.size / max_size : 0;
  const double alike = lost.totals.nn / lost.totals.n;  // samples of a cluster
  lost_variance_ =
      lost.size * lost.size * ((1 - busy) * alike / lost.totals.n + 1 / traced_samples);
}

// Gives strata that the trace does not measure the cycles that their samples stand for.
bool Profile::SizeStrata(ProfileResult& result) {
  absl::flat_hash_map<DomainId, bool> sampled;
  double traced = 0;
  double traced_samples = 0;
  for (const Stratum& stratum : strata_) {
    if (stratum.totals.n <= 0 || !IsTraced(stratum.context.kind)) continue;
    sampled[stratum.vcpu.domain] = true;
    traced += stratum.size;
    traced_samples += stratum.totals.n;
  }
  double rate = options_.period > 0 && options_.is_time ? options_.period : 1;
  if (traced > 0) rate = traced / traced_samples;
  for (Stratum& stratum : strata_) {
    if (stratum.context.kind == ContextKind::kLost) {
      SizeLost(stratum, rate, traced_samples);
    } else if (!IsTraced(stratum.context.kind)) {
      stratum.size = stratum.totals.n * rate;
    }
    if (stratum.totals.n > 0) {
      result.cycles += stratum.size;
    } else if (sampled.contains(stratum.vcpu.domain)) {
      result.unsampled_cycles += stratum.size;
    }
  }
  return traced > 0;
}

Profile::Factors Profile::UnionFactors(const std::vector<const Part*>& parts) const {
  struct Sums {
    std::vector<StratumUnions::Share> shares;
    double samples = 0;
    double cycles = 0;
    double alone = 0;        // variance of the cycles, if the strata were strangers to each other
    double independent = 0;  // ... and all samples
  };
  absl::flat_hash_map<uint32_t, Sums> unions;
  for (const Part* part : parts) {
    if (part->union_number == StratumUnions::kNone) continue;
    const Stratum& stratum = strata_[part->stratum];
    Sums& sums = unions[part->union_number];
    const double share = part->sums.x / stratum.totals.n;
    const double squared = stratum.size * stratum.size;
    sums.shares.push_back({stratum.of_vcpu, share});
    sums.samples += part->sums.x;
    sums.cycles += stratum.size * share;
    sums.alone += squared * ShareVariance(part->sums, stratum.totals);
    sums.independent += squared * share * (1 - share) / stratum.totals.n;
  }
  Factors factors;
  for (const auto& [number, sums] : unions) {
    if (sums.shares.size() < 2 || sums.samples <= 0 || sums.alone <= 0) continue;
    const double rate = sums.cycles / sums.samples;  // cycles a sample
    const double all = unions_.SamplesOfVcpu(number);
    const double share = sums.samples / all;
    const double variance =
        std::min(unions_.Variance(number, sums.shares), unions_.PlainVariance(number, share));
    // That a few samples are all alike is no certainty: once for all strata.
    const double min_variance = all * all * IndependentVariance({}, {all, 0, 0});
    factors[number] =
        std::max(rate * rate * std::max(variance, min_variance), sums.independent) / sums.alone;
  }
  return factors;
}

std::vector<ProfileRow> Profile::Estimate(const Rows& rows, bool exact,
                                          const ProfileResult& result) const {
  std::vector<ProfileRow> out;
  out.reserve(rows.keys.size());
  // Domains have keys of that alone.
  const auto place_of = [&](Dimension d) -> std::optional<size_t> {
    if (&rows == &rows_) return places_[static_cast<size_t>(d)];
    return d == Dimension::kDomain ? std::optional<size_t>(0) : std::nullopt;
  };
  std::vector<std::vector<const Part*>> parts(rows.keys.size());
  for (const Part& part : rows.parts) parts[part.row].push_back(&part);
  for (size_t i = 0; i < rows.keys.size(); ++i) {
    const auto at = [&](Dimension d) -> uint64_t {
      const std::optional<size_t> place = place_of(d);
      return place ? rows.keys[i][*place] : 0;
    };
    ProfileRow row;
    row.domain = {static_cast<uint16_t>(at(Dimension::kDomain))};
    row.vcpu = {static_cast<uint32_t>(at(Dimension::kVcpu))};
    row.pcpu = {static_cast<uint32_t>(at(Dimension::kPcpu))};
    row.mode = static_cast<Mode>(at(Dimension::kMode));
    row.exit = UnpackContext(at(Dimension::kExit));
    UnpackSubreason(at(Dimension::kSubreason), row.exit);
    row.exit.waiting = static_cast<uint32_t>(at(Dimension::kWaiting));
    row.exit.wakeup = static_cast<uint32_t>(at(Dimension::kWakeup));
    row.address = at(Dimension::kAddress);
    row.process = {static_cast<uint32_t>(at(Dimension::kProcess))};
    row.stack = static_cast<uint32_t>(at(Dimension::kStack));
    row.placing = static_cast<Placement>(at(Dimension::kPlacing));
    if (&rows == &rows_) {
      const std::vector<std::string>& names = names_.all();
      if (Has(Dimension::kImage)) row.image = names[at(Dimension::kImage)];
      if (Has(Dimension::kLine)) row.line = names[at(Dimension::kLine)];
      if (Has(Dimension::kFunction)) row.function = names[at(Dimension::kFunction)];
    }
    PostStratified estimate;
    double of_lost = 0;  // its share of lost time
    const Factors factors = UnionFactors(parts[i]);
    for (const Part* part_of_row : parts[i]) {
      const Part& part = *part_of_row;
      const Stratum& stratum = strata_[part.stratum];
      row.samples += part.sums.x;
      const bool known = exact && IsTraced(stratum.context.kind);
      double variance = known ? 0 : ShareVariance(part.sums, stratum.totals);
      if (const auto factor = factors.find(part.union_number); factor != factors.end()) {
        variance *= factor->second;
      }
      estimate.Add(stratum.size, part.sums.x / stratum.totals.n, variance);
      if (part.stratum == lost_stratum_) of_lost = part.sums.x / stratum.totals.n;
      if (!options_.parts) continue;
      const double of_all = result.cycles > 0 ? stratum.size / result.cycles : 0;
      row.parts.push_back({stratum.vcpu, stratum.context, part.sums.x, stratum.totals.n,
                           stratum.totals.clusters, stratum.size, of_all * of_all * variance});
    }
    if (result.cycles > 0) {
      row.share = estimate.total() / result.cycles;
      // If lost time is longer than estimated, shares move towards those in it.
      const double moved = of_lost - row.share;
      row.variance =
          (estimate.variance() + moved * moved * lost_variance_) / (result.cycles * result.cycles);
      row.interval = IntervalOf(row.share, row.variance, result.samples);
    }
    if (options_.is_time) row.cycles = estimate.total();
    out.push_back(std::move(row));
  }
  return out;
}

void Profile::CheckDomains(ProfileResult& result) const {
  struct Sums {
    double samples = 0;
    double cycles = 0;
    bool traced = false;
  };
  absl::flat_hash_map<DomainId, Sums> domains;
  Sums all;
  for (const Stratum& stratum : strata_) {
    if (!IsTraced(stratum.context.kind)) continue;
    Sums& sums = domains[stratum.vcpu.domain];
    sums.samples += stratum.totals.n;
    sums.cycles += stratum.size;
  }
  double squares = 0;
  for (const auto& [domain, sums] : domains) {
    if (sums.samples <= 0) continue;  // not profiled
    all.samples += sums.samples;
    all.cycles += sums.cycles;
    squares += cluster_squares_.at(domain);
  }
  if (all.cycles <= 0) return;
  for (const auto& [domain, sums] : domains) {
    if (sums.samples <= 0) continue;
    const double p = sums.samples / all.samples;
    const double own = cluster_squares_.at(domain);
    const double variance =
        ((1 - p) * (1 - p) * own + p * p * (squares - own)) / (all.samples * all.samples);
    result.checks.push_back({domain, p, sums.cycles / all.cycles, std::sqrt(variance)});
  }
  std::sort(result.checks.begin(), result.checks.end(),
            [](const DomainCheck& a, const DomainCheck& b) { return a.domain < b.domain; });
}

absl::StatusOr<ProfileResult> Profile::Finish() {
  for (auto& [vcpu, clusters] : clusters_) {
    for (Cluster& cluster : clusters.open) Close(vcpu, clusters.domain, cluster);
  }
  ProfileResult result;
  result.samples = samples_;
  result.stacks = stacks_.Take();
  result.inlined = stacks_.inlined();
  const bool measured = SizeStrata(result);
  const bool whole_vcpus =
      std::all_of(options_.by.begin(), options_.by.end(), [](Dimension dimension) {
        return dimension == Dimension::kDomain || dimension == Dimension::kVcpu;
      });
  result.rows = Estimate(rows_, measured && whole_vcpus, result);
  result.domains = Estimate(domains_, measured, result);
  if (measured) CheckDomains(result);
  for (const auto& [why, samples] : unresolved_) result.unresolved.push_back({why, samples});
  std::sort(result.unresolved.begin(), result.unresolved.end(),
            [](const Unresolved& a, const Unresolved& b) {
              return std::tie(b.samples, a.why) < std::tie(a.samples, b.why);
            });
  double sum = 0;
  for (const ProfileRow& row : result.rows) sum += row.samples;
  if (std::abs(sum - samples_) > 1e-6 * std::max(samples_, 1.0)) {
    return InternalError("the rows hold {} samples, but {} were attributed", sum, samples_);
  }
  return result;
}

}  // namespace xenoscope::correlate
