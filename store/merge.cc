#include "store/merge.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "correlate/profile_estimate.h"
#include "store/counters.h"
#include "store/row_order.h"

namespace xenoscope::store {
namespace {

using correlate::ClusterSums;
using correlate::Context;
using correlate::ContextKind;
using correlate::Dimension;
using correlate::Part;
using correlate::Stratum;
using correlate::StratumUnions;

constexpr std::array kColumns = {Dimension::kHost,    Dimension::kDomain, Dimension::kVcpu,
                                 Dimension::kMode,    Dimension::kExit,   Dimension::kImage,
                                 Dimension::kFunction};
constexpr size_t kMaxDomains = 65'536;
constexpr double kNsPerSecond = 1e9;
constexpr double kMaxCycles = 0x1p60;

ClusterSums& operator+=(ClusterSums& sums, const ClusterSums& more) {
  sums.x += more.x;
  sums.xx += more.xx;
  sums.xn += more.xn;
  return sums;
}

// Two numbers as one key.
uint64_t Pair(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

// A row that has all samples of a stratum.
ClusterSums WholeStratum(const correlate::ClusterTotals& totals) {
  return {totals.n, totals.nn, totals.nn};
}

}  // namespace

Merger::Merger(std::vector<Dimension> by, uint64_t clock_hz) : clock_hz_(clock_hz), sums_(by) {
  if (Has(Dimension::kMode)) columns_ |= kModeColumn;
  if (Has(Dimension::kImage)) columns_ |= kImageColumn;
  if (Has(Dimension::kFunction)) columns_ |= kFunctionColumn;
  exact_ = columns_ == 0;
  has_unions_ = !exact_ && !Has(Dimension::kExit);
}

absl::StatusOr<Merger> Merger::By(std::vector<Dimension> by, uint64_t clock_hz) {
  for (const Dimension dimension : by) {
    if (std::ranges::find(kColumns, dimension) != kColumns.end()) continue;
    return InvalidError(
        "a store has rows by host, domain, vcpu, mode, exit, image and function; leave out the "
        "other "
        "columns, or report a recording");
  }
  return Merger(std::move(by), clock_hz);
}

absl::Status Merger::Begin(const Slice& slice, const Dictionary& dictionary) {
  const SliceHead& head = slice.head;
  dictionary_ = &dictionary;
  if (out_.slices == 0) {
    out_.event = head.event;
    out_.is_time = out_.stratified = head.is_time;
    out_.clock = {clock_hz_ == 0 ? head.clock_hz : clock_hz_, ClockSource::kRecorded};
    out_.traced = false;
  }
  if (head.event != out_.event || head.is_time != out_.is_time) {
    return InvalidError(
        "slices of the events {} and {} have no common shares: choose one with "
        "--event",
        out_.event, head.event);
  }
  out_.slices += slice.count;
  out_.traced = out_.traced || head.traced;
  const uint32_t host = hosts_.Intern(head.host);
  scale_ = static_cast<double>(out_.clock.hz) / static_cast<double>(head.clock_hz);
  const double period = head.period * scale_;
  if (host != host_ || period != period_) ForgetHost();
  host_ = host;
  period_ = period;
  const auto sampled_ns = static_cast<double>(head.end_ns - head.begin_ns - slice.gaps_ns);
  const double cycles = sampled_ns * static_cast<double>(out_.clock.hz) / kNsPerSecond;
  out_.sampled.end = out_.sampled.end + static_cast<Cycles>(std::min(cycles, kMaxCycles));
  const std::vector<VcpuKey>& vcpus = dictionary.vcpus.all();
  while (domain_of_.size() < vcpus.size()) {
    const uint32_t number = domains_.Intern(vcpus[domain_of_.size()].domain);
    if (number >= kMaxDomains) {
      return ExhaustedError(
          "there are more than {} domains of different names; choose fewer hosts "
          "with --host, or a shorter time",
          kMaxDomains);
    }
    domain_of_.push_back({static_cast<uint16_t>(number)});
  }
  return absl::OkStatus();
}

void Merger::ForgetHost() {
  known_places_.clear();
  places_.clear();
  known_parts_.Clear();
  last_place_key_ = ~uint64_t{0};
}

VcpuRef Merger::RefOf(VcpuNumber vcpu) {
  const auto next = static_cast<uint32_t>(refs_.size());
  return refs_.try_emplace({host_, vcpu}, VcpuRef{domain_of_[vcpu.value], {next}}).first->second;
}

Context Merger::ContextOf(ContextNumber number) {
  const ContextKey& key = dictionary_->contexts[number];
  Context context{key.kind};
  if (key.kind == ContextKind::kExit) {
    context.reason = exits_.Intern(key.exit);
  } else {
    context.nested = key.exit == ContextKey::kNested;
  }
  return context;
}

uint32_t Merger::PlaceOf(VcpuNumber vcpu, ContextNumber context) {
  const uint64_t key = Pair(vcpu.value, context.value);
  if (key == last_place_key_) return last_place_;
  const auto next = static_cast<uint32_t>(places_.size());
  const auto [known, is_new] = known_places_.try_emplace(key, next);
  if (is_new) places_.push_back(NewPlace(vcpu, context));
  last_place_key_ = key;
  return last_place_ = known->second;
}

Merger::Place Merger::NewPlace(VcpuNumber vcpu, ContextNumber context) {
  Place place;
  if (context == kAllContexts) return place;  // of unions alone
  place.stratum = NewStratumOf(vcpu, context);
  const Stratum& stratum = sums_.strata.all[place.stratum];
  place.of_vcpu = stratum.of_vcpu;
  place.traced = correlate::IsTraced(stratum.context.kind);
  return place;
}

uint32_t Merger::NewStratumOf(VcpuNumber vcpu, ContextNumber number) {
  const Context context = ContextOf(number);
  const bool traced = correlate::IsTraced(context.kind);
  const VcpuRef ref = traced ? RefOf(vcpu) : VcpuRef();
  std::vector<Stratum>& all = sums_.strata.all;
  const auto [at, is_new] = strata_.try_emplace({host_, ref, context, traced ? 0 : period_},
                                                static_cast<uint32_t>(all.size()));
  if (is_new) {
    Stratum& stratum = all.emplace_back();
    stratum.vcpu = ref;
    stratum.context = context;
    stratum.host = host_;
    stratum.period = period_;
    stratum.has_both_modes = dictionary_->contexts[number].has_both_modes;
    if (has_unions_ && correlate::MayBeUnited(context.kind))
      stratum.of_vcpu = sums_.strata.unions.AddStratum(ref);
  }
  return at->second;
}

const Merger::Code& Merger::CodeOf(CodeNumber number) {
  if (number.value >= codes_.size()) codes_.resize(number.value + 1);
  Code& code = codes_[number.value];
  if (code.function != kNotNamed) return code;
  const CodeKey& key = dictionary_->codes[number];
  const bool late = late_names_ != nullptr && Has(Dimension::kFunction);
  code.mode = key.mode;
  code.image = names_.Intern(key.image);
  code.function = names_.Intern(late ? late_names_->NameOf(key.function) : key.function);
  return code;
}

uint32_t Merger::RowOf(VcpuNumber vcpu, const Context& context, const Code& code) {
  const correlate::KeyLayout& layout = sums_.rows.layout;
  correlate::RowKey key = layout.EmptyKey();
  layout.Put(Dimension::kHost, host_, key);
  layout.Put(Dimension::kDomain, domain_of_[vcpu.value].value, key);
  layout.Put(Dimension::kVcpu, dictionary_->vcpus[vcpu].number, key);
  layout.Put(Dimension::kMode, static_cast<uint64_t>(code.mode), key);
  layout.Put(Dimension::kImage, code.image, key);
  layout.Put(Dimension::kFunction, code.function, key);
  layout.PutContext(context, key);
  return sums_.rows.Find(key);
}

Merger::PartAmounts& Merger::AmountsOf(VcpuNumber vcpu, ContextNumber context, CodeNumber code) {
  const uint32_t place = PlaceOf(vcpu, context);
  uint32_t part = known_parts_.At(place, code.value);
  if (part == PagedNumbers::kNone) {
    part = PartOf(vcpu, places_[place].stratum, CodeOf(code));
    if (places_[place].of_vcpu != StratumUnions::kNone) {
      sums_.rows.parts[part].union_number = UnionOf(vcpu, code);
    }
    known_parts_.At(place, code.value) = part;
  }
  return amounts_[part];
}

uint32_t Merger::PartOf(VcpuNumber vcpu, uint32_t stratum, const Code& code) {
  const uint32_t row = RowOf(vcpu, sums_.strata.all[stratum].context, code);
  const uint32_t part = sums_.rows.PartOf(row, stratum);
  amounts_.resize(sums_.rows.parts.size());
  return part;
}

uint32_t Merger::UnionOf(VcpuNumber vcpu, CodeNumber code) {
  uint32_t& number = known_parts_.At(PlaceOf(vcpu, kAllContexts), code.value);
  if (number == PagedNumbers::kNone) {
    number = sums_.strata.unions.UnionNumber(RowOf(vcpu, {}, CodeOf(code)), RefOf(vcpu));
  }
  return number;
}

Part& Merger::DomainPartOf(VcpuNumber vcpu, ContextNumber context) {
  Place& place = places_[PlaceOf(vcpu, context)];
  if (place.domain_part == kUnknown) {
    const uint32_t domain = sums_.domains.Find({domain_of_[vcpu.value].value});
    place.domain_part = sums_.domains.PartOf(domain, place.stratum);
  }
  return sums_.domains.parts[place.domain_part];
}

void Merger::LinkToGuest(VcpuNumber vcpu, ContextNumber context, uint32_t transition) {
  const std::vector<ContextKey>& contexts = dictionary_->contexts.all();
  const std::string& exit = contexts[context.value].exit;
  const auto guest = std::ranges::find_if(contexts, [&exit](const ContextKey& key) {
    return key.kind == ContextKind::kGuest && key.exit == exit;
  });
  if (guest == contexts.end()) return;
  const uint32_t number = StratumOf(vcpu, {static_cast<uint32_t>(guest - contexts.begin())});
  sums_.strata.all[transition].guest = number;
}

void Merger::AddStrata(const std::vector<StratumSums>& strata) {
  for (const StratumSums& more : strata) {
    const uint32_t number = StratumOf(more.vcpu, more.context);
    Stratum& stratum = sums_.strata.all[number];
    stratum.size += more.cycles * scale_;
    stratum.stays += more.stays;
    stratum.totals.n += more.totals.n;
    stratum.totals.nn += more.totals.nn;
    stratum.totals.clusters += more.totals.clusters;
    sums_.samples += more.totals.n;
    const ContextKind kind = stratum.context.kind;
    if (kind == ContextKind::kTransition) LinkToGuest(more.vcpu, more.context, number);
    if (!correlate::IsTraced(kind) || more.totals.n == 0) continue;
    DomainPartOf(more.vcpu, more.context).sums += WholeStratum(more.totals);
    if (exact_) amounts_[PartOf(more.vcpu, number, {})].sums += WholeStratum(more.totals);
  }
}

void Merger::AddVcpus(const SliceSums& sums) {
  for (const VcpuSums& more : sums.vcpus) {
    const VcpuRef ref = RefOf(more.vcpu);
    correlate::ModeSums& modes = sums_.modes[ref];
    modes.xen += more.modes.xen;
    modes.all.n += more.modes.all.n;
    modes.all.nn += more.modes.all.nn;
    modes.all.clusters += more.modes.all.clusters;
    sums_.cluster_squares[ref] += more.traced_squares;
    auto& [stays, median_stays] = medians_[ref];
    stays += more.stays;
    median_stays += more.median_stays * scale_;
    if (has_unions_) sums_.strata.unions.Add(ref, more.clusters);
  }
  if (!has_unions_) return;
  for (const PairSums& more : sums.pairs) {
    const uint32_t a = sums_.strata.all[StratumOf(more.vcpu, more.a)].of_vcpu;
    const uint32_t b = sums_.strata.all[StratumOf(more.vcpu, more.b)].of_vcpu;
    if (a == StratumUnions::kNone || b == StratumUnions::kNone) continue;
    sums_.strata.unions.AddProducts(RefOf(more.vcpu), a, b, more.nn);
  }
}

void Merger::AddParts(const SliceSums& sums) {
  for (const PartSums& more : sums.parts) {
    const Place& place = places_[PlaceOf(more.vcpu, more.context)];
    if (!place.traced) DomainPartOf(more.vcpu, more.context).sums += more.sums;
    if (exact_ && place.traced) continue;  // AddStrata
    if (more.sums.xx > 0) {
      PartAmounts& amounts = AmountsOf(more.vcpu, more.context, more.code);
      amounts.sums += more.sums;
      amounts.union_xn += more.union_xn;
    } else if (more.union_xn != 0 && place.of_vcpu != StratumUnions::kNone) {
      const uint32_t of_vcpu = place.of_vcpu;
      sums_.strata.unions.AddProducts(UnionOf(more.vcpu, more.code), of_vcpu, more.union_xn);
    }
  }
  if (!has_unions_) return;
  for (const UnionSums& more : sums.unions) {
    sums_.strata.unions.Add(UnionOf(more.vcpu, more.code), more.sums);
  }
}

void Merger::AddCrosses(const std::vector<CrossSums>& crosses) {
  for (const CrossSums& more : crosses) {
    if (more.columns == 0 && more.context != kAllContexts) {
      DomainPartOf(more.vcpu, more.context).sums.xx += more.xx;
    }
    if (more.columns != columns_) continue;
    if (more.context != kAllContexts) {
      AmountsOf(more.vcpu, more.context, more.code).sums.xx += more.xx;
    } else if (has_unions_) {
      sums_.strata.unions.Add(UnionOf(more.vcpu, more.code), {more.xx, 0});
    }
  }
}

void Merger::AddCounters(const std::vector<Counter>& counters) {
  for (const Counter& more : counters) {
    const uint32_t number = counters_.Intern(more.name);
    if (number == counts_.size()) counts_.push_back(0);
    counts_[number] += more.value;
  }
}

absl::Status Merger::Add(const Slice& slice, const Dictionary& dictionary) {
  XENOSCOPE_RETURN_IF_ERROR(Begin(slice, dictionary));
  AddStrata(slice.sums.strata);
  AddVcpus(slice.sums);
  AddParts(slice.sums);
  AddCrosses(slice.sums.crosses);
  AddCounters(slice.sums.counters);
  return absl::OkStatus();
}

void Merger::SetParts() {
  for (size_t number = 0; number < amounts_.size(); ++number) {
    Part& part = sums_.rows.parts[number];
    const PartAmounts& amounts = amounts_[number];
    part.sums = amounts.sums;
    if (part.union_number == StratumUnions::kNone || amounts.union_xn == 0) continue;
    sums_.strata.unions.AddProducts(part.union_number, sums_.strata.all[part.stratum].of_vcpu,
                                    amounts.union_xn);
  }
}

void Merger::SetDimensions(const correlate::RowSums& rows,
                           std::vector<correlate::ProfileRow>& out) const {
  const correlate::KeyLayout& layout = rows.layout;
  for (size_t number = 0; number < out.size(); ++number) {
    const correlate::RowKey& key = rows.keys[number];
    correlate::ProfileRow& row = out[number];
    row.domain = {static_cast<uint16_t>(layout.Get(Dimension::kDomain, key))};
    row.vcpu = {static_cast<uint32_t>(layout.Get(Dimension::kVcpu, key))};
    row.mode = static_cast<Mode>(layout.Get(Dimension::kMode, key));
    row.exit = layout.GetContext(key);
    if (layout.Has(Dimension::kHost)) row.host = hosts_.all()[layout.Get(Dimension::kHost, key)];
    if (layout.Has(Dimension::kImage)) {
      row.image = names_.all()[layout.Get(Dimension::kImage, key)];
    }
    if (layout.Has(Dimension::kFunction)) {
      row.function = names_.all()[layout.Get(Dimension::kFunction, key)];
    }
  }
}

absl::StatusOr<MergedProfile> Merger::Finish() {
  if (out_.slices == 0) return NotFoundError("the store has no slice of these hosts and times");
  for (const auto& [ref, median] : medians_) {
    if (median.first > 0) sums_.median_stays[ref] = median.second / median.first;
  }
  SetParts();
  const correlate::ProfileEstimator estimator({.is_time = out_.is_time, .exact = exact_}, sums_);
  correlate::ProfileResult& result = out_.result;
  result.rows = estimator.Rows();
  result.domains = estimator.Domains();
  SetDimensions(sums_.rows, result.rows);
  SetDimensions(sums_.domains, result.domains);
  OrderByNames(domains_.all(), exits_.all(), result.rows);
  OrderByNames(domains_.all(), exits_.all(), result.domains);
  XENOSCOPE_RETURN_IF_ERROR(estimator.AddTotals(result));
  for (size_t i = 0; i < counts_.size(); ++i) {
    AddCounter({counters_.all()[i], counts_[i]}, out_, out_);
  }
  out_.domains = domains_.all();
  out_.exits = exits_.all();
  out_.hosts = hosts_.all();
  return std::move(out_);
}

}  // namespace xenoscope::store
