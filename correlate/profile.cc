#include "correlate/profile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "correlate/profile_estimate.h"
#include "correlate/subtotals.h"

namespace xenoscope::correlate {
namespace {

constexpr Address kPageOffset = 4095;  // the bits of an address that are its place in a page

// The number of a vCPU in keys: vCPUs of different domains are different.
uint64_t PackVcpu(VcpuRef vcpu) { return uint64_t{vcpu.domain.value} << 32U | vcpu.vcpu.value; }
VcpuRef UnpackVcpu(uint64_t packed) {
  return {DomainId{static_cast<uint16_t>(packed >> 32U)}, VcpuId{static_cast<uint32_t>(packed)}};
}

// Processes of samples are numbered as the samples have them, those of threads from here on.
constexpr uint64_t kFirstProcessOfThread = uint64_t{1} << 32;

double CountOf(const PlacedSample& placed) { return static_cast<double>(placed.count); }

size_t NumberOfEvents(const ProfileOptions& options) {
  if (options.event_numbers.empty()) return 0;
  return size_t{*std::ranges::max_element(options.event_numbers)} + 1;
}

}  // namespace

Profile::Profile(ProfileOptions options, Resolver& resolver)
    : options_(std::move(options)),
      resolver_(resolver),
      sums_(options_.by),
      row_events_(NumberOfEvents(options_)),
      domain_events_(NumberOfEvents(options_)),
      choice_layout_(options_.choice.by),
      stacks_({.by_address = Has(Dimension::kAddress),
               .fold_recursion = options_.fold_recursion,
               .inlined_at = options_.inlined_at}) {
  if (options_.subtotals) MakeLevels();
  has_unions_ = sums_.rows.has_unions || std::ranges::any_of(levels_, [](const Level& level) {
                  return level.rows.sums.has_unions;
                });
  by_thread_ =
      options_.threads != nullptr && (Has(Dimension::kThread) || Has(Dimension::kContainer) ||
                                      Has(Dimension::kProcess) || Has(Dimension::kBehalf));
  by_place_ = !sums_.rows.has_unions || by_thread_ || Has(Dimension::kPcpu);
}

uint64_t Profile::BehalfKey(AddressSpaceId space) const {
  const std::optional<DomainId> behalf = options_.behalf_of(space);
  return behalf ? uint64_t{behalf->value} + 1 : 0;
}

const Profile::KnownThread& Profile::ThreadOf(const Context& context, DomainId domain, Tsc when) {
  if (context.thread >= thread_of_.size()) thread_of_.resize(size_t{context.thread} + 1);
  std::optional<KnownThread>& known = thread_of_[context.thread];
  if (!known) {
    known = KnownThread{options_.threads->IdentityOf(context.thread)};
    const uint32_t pid = known->identity.pid;
    if (Has(Dimension::kBehalf) && pid != 0) {
      known->behalf = BehalfKey(options_.space_of(domain, pid, when));
    }
  }
  return *known;
}

void Profile::PutPlace(const PlacedSample& placed, VcpuRef vcpu, const Place& place,
                       const KeyLayout& layout, RowKey& key) {
  layout.Put(Dimension::kDomain, vcpu.domain.value, key);
  layout.Put(Dimension::kVcpu, PackVcpu(vcpu), key);
  layout.PutContext(place.context, key);
  layout.Put(Dimension::kPcpu, place.pcpu.value, key);
  if (!by_thread_) return;
  const KnownThread& thread = ThreadOf(place.context, vcpu.domain, placed.when.begin);
  layout.Put(Dimension::kThread, thread.identity.thread, key);
  layout.Put(Dimension::kContainer, thread.identity.container, key);
  if (placed.sample->space.value == 0) {
    layout.Put(Dimension::kProcess, kFirstProcessOfThread + thread.identity.process, key);
    layout.Put(Dimension::kBehalf, thread.behalf, key);
  }
}

uint32_t Profile::StratumOf(VcpuRef vcpu, Context context) {
  if (!IsStratified()) context = {ContextKind::kUntraced};
  // Stacks have subreasons, too. Their strata are those of rows by other columns, so that the sums
  // over stacks are what these rows have.
  if (!Has(Dimension::kSubreason)) context = WithoutSubreason(context);
  if (!by_thread_ || !IsTraced(context.kind)) context.thread = 0;
  if (!IsTraced(context.kind)) vcpu = {};
  const uint64_t mixed =
      Mixed(context) + 29 * uint64_t{vcpu.vcpu.value} + 37 * uint64_t{vcpu.domain.value};
  const uint32_t number = stratum_numbers_.Intern({vcpu, context}, mixed);
  if (number == sums_.strata.all.size()) {
    Stratum& stratum = sums_.strata.all.emplace_back();
    stratum.vcpu = vcpu;
    stratum.context = context;
    stratum.has_both_modes = HasBothModes(context);
    if (options_.period > 0 && options_.is_time) stratum.period = options_.period;
    if (has_unions_ && MayBeUnited(context.kind))
      stratum.of_vcpu = sums_.strata.unions.AddStratum(vcpu);
  }
  return number;
}

Profile::Names Profile::NamesOf(const PlacedSample& placed) {
  const FunctionId id = FunctionOf(placed, resolver_);
  const Function& function = resolver_.Describe(id);
  if (!function.unresolved.empty()) unresolved_[function.unresolved] += CountOf(placed);
  return NamesOf(id);
}

Profile::Names Profile::NamesOf(FunctionId id) {
  const auto found = names_of_function_.find(id.value);
  if (found != names_of_function_.end()) return found->second;
  const Function& function = resolver_.Describe(id);
  const Names names{names_.Intern(function.image), names_.Intern(function.name)};
  names_of_function_[id.value] = names;
  return names;
}

uint32_t Profile::LineOf(const PlacedSample& placed) {
  const recording::Sample& sample = *placed.sample;
  const CodeLocation code{placed.vcpu.domain, placed.mode(), sample.space, placed.address};
  const auto [at, is_new] = line_of_code_.try_emplace(code);
  if (is_new) at->second = names_.Intern(options_.line_of(placed));
  return at->second;
}

void Profile::OnTraced(VcpuRef vcpu, Context context, ContextTime time) {
  if (!IsStratified()) return;
  const uint32_t stratum = StratumOf(vcpu, context);
  sums_.strata.all[stratum].size += static_cast<double>(time.cycles);
  if (time.stays == 0) return;
  if (time.median_stay > 0) sums_.median_stays[vcpu] = static_cast<double>(time.median_stay);
  const uint32_t transition = StratumOf(vcpu, TransitionOf(context));
  sums_.strata.all[transition].guest = stratum;
  for (const uint32_t each : {stratum, transition}) {
    sums_.strata.all[each].stays += static_cast<double>(time.stays);
  }
}

bool Profile::HasBothModes(const Context& context) const {
  return context.kind == ContextKind::kGuest || context.kind == ContextKind::kTransition ||
         context.kind == ContextKind::kResume ||
         (context.kind == ContextKind::kExit && context.reason != options_.nmi_exit_reason);
}

void Profile::OnUnplaced(const recording::Sample& /*sample*/, UnplacedReason /*why*/) {}

RowKey Profile::KeyOf(const PlacedSample& placed) {
  const KeyLayout& layout = sums_.rows.layout;
  RowKey key = layout.EmptyKey();
  layout.Put(Dimension::kMode, static_cast<uint64_t>(placed.mode()), key);
  layout.Put(Dimension::kAddress, placed.address, key);
  layout.Put(Dimension::kPage, placed.address & ~kPageOffset, key);
  layout.Put(Dimension::kProcess, placed.sample->space.value, key);
  layout.Put(Dimension::kPlacing, static_cast<uint64_t>(placed.placement), key);
  if (Has(Dimension::kImage) || Has(Dimension::kFunction)) {
    const Names names = NamesOf(placed);
    layout.Put(Dimension::kImage, names.image, key);
    layout.Put(Dimension::kFunction, names.function, key);
  }
  if (Has(Dimension::kBehalf)) {
    layout.Put(Dimension::kBehalf, BehalfKey(placed.sample->space), key);
  }
  if (Has(Dimension::kLine)) layout.Put(Dimension::kLine, LineOf(placed), key);
  if (Has(Dimension::kStack)) layout.Put(Dimension::kStack, stacks_.Add(placed, resolver_), key);
  return key;
}

const std::vector<Profile::Member>& Profile::MembersOf(const PlacedSample& placed) {
  const uint32_t number = stacks_.Add(placed, resolver_);
  if (number == members_.size()) {
    std::vector<Member>& members = members_.emplace_back();
    for (const StackFrame& frame : stacks_.at(number)) {
      members.push_back({frame.mode, NamesOf(frame.function)});
    }
  }
  return members_[number];
}

void Profile::ListTotalRows(const PlacedSample& placed, RowKey& key) {
  const KeyLayout& layout = sums_.totals.layout;
  total_rows_.clear();
  for (const Member& member : MembersOf(placed)) {
    layout.Put(Dimension::kMode, static_cast<uint64_t>(member.mode), key);
    layout.Put(Dimension::kImage, member.names.image, key);
    layout.Put(Dimension::kFunction, member.names.function, key);
    const uint32_t row = sums_.totals.Find(key);
    total_rows_.push_back({0, row});
    for (uint32_t number = 0; number < levels_.size(); ++number) {
      if (!levels_[number].has_totals) continue;
      const uint32_t of = LevelRowOf(levels_[number].totals, sums_.totals, row);
      if (of != kNotChosen) total_rows_.push_back({number + 1, of});
    }
  }
  // However often a row is in the stack, the sample is in its total once.
  std::ranges::sort(total_rows_);
  total_rows_.erase(std::unique(total_rows_.begin(), total_rows_.end()), total_rows_.end());
}

void Profile::AddToTotals(const PlacedSample& placed, const RowKey& key, Cluster& cluster) {
  const double count = CountOf(placed);
  RowKey of_member = key;
  VcpuRef vcpu = placed.vcpu;
  for (const Place& place : placed.places) {
    const VcpuRef of = place.to.value_or(placed.vcpu);
    if (total_rows_.empty() || by_place_ || of != vcpu) {
      vcpu = of;
      PutPlace(placed, vcpu, place, sums_.totals.layout, of_member);
      ListTotalRows(placed, of_member);
    }
    const uint32_t stratum = StratumOf(vcpu, place.context);
    for (const TotalRow& total : total_rows_) {
      RowSums& rows = total.level == 0 ? sums_.totals : levels_[total.level - 1].totals.sums;
      cluster.total_weights.push_back(
          {total.level, PartOf(rows, total.row, vcpu, stratum), place.weight * count});
    }
  }
  total_rows_.clear();
}

void Profile::OnPlaced(const PlacedSample& placed) {
  const double count = CountOf(placed);
  const uint32_t event = EventOf(*placed.sample);
  if (event == 0) sums_.samples += count;
  RowKey key = KeyOf(placed);
  Cluster& cluster = ClusterOf(placed.vcpu, placed.cluster);
  const KeyLayout& layout = sums_.rows.layout;
  // Stacks of Xen begin with the exit in which it ran.
  const bool by_exit = Has(Dimension::kStack) && placed.mode() == Mode::kXen;
  const auto stack = static_cast<uint32_t>(layout.Get(Dimension::kStack, key));
  std::optional<uint32_t> row;
  VcpuRef vcpu = placed.vcpu;
  for (const Place& place : placed.places) {
    const VcpuRef of = place.to.value_or(placed.vcpu);
    if (!row || by_place_ || by_exit || of != vcpu) {
      vcpu = of;
      PutPlace(placed, vcpu, place, layout, key);
      if (by_exit) layout.Put(Dimension::kStack, stacks_.WithExit(stack, place.context), key);
      row = sums_.rows.Find(key);
    }
    if (HasSeveralEvents()) {
      const uint32_t domain = sums_.domains.Find({vcpu.domain.value});
      cluster.event_weights.push_back({*row, domain, event, place.weight * count});
    }
    if (event != 0) continue;
    const uint32_t stratum = StratumOf(vcpu, place.context);
    cluster.weights.push_back({PartOf(sums_.rows, *row, vcpu, stratum), placed.mode() == Mode::kXen,
                               place.weight * count, place.length * count});
    // Other strata say of which domain they are.
    if (vcpu.domain != placed.vcpu.domain && !IsTraced(sums_.strata.all[stratum].context.kind)) {
      const uint32_t domain = sums_.domains.Find({vcpu.domain.value});
      cluster.moved.push_back({stratum, domain, place.weight * count});
    }
  }
  if (options_.totals) AddToTotals(placed, key, cluster);
}

Profile::Cluster& Profile::ClusterOf(VcpuRef vcpu, uint64_t number) {
  const auto [at, is_new] = clusters_.try_emplace(vcpu);
  OpenClusters& clusters = at->second;
  if (is_new) clusters.domain = sums_.domains.Find({vcpu.domain.value});
  const auto known = std::ranges::find(clusters.open, number, &Cluster::number);
  if (known != clusters.open.end()) return *known;
  Cluster& oldest = *std::ranges::min_element(clusters.open, {}, &Cluster::number);
  Close(vcpu, clusters.domain, oldest);
  oldest.number = number;
  return oldest;
}

uint32_t Profile::PartOf(RowSums& rows, uint32_t row, VcpuRef vcpu, uint32_t stratum) {
  const uint32_t number = rows.PartOf(row, stratum);
  Part& part = rows.parts[number];
  if (rows.has_unions && part.union_number == StratumUnions::kNone &&
      sums_.strata.all[stratum].of_vcpu != StratumUnions::kNone) {
    part.union_number = sums_.strata.unions.UnionNumber(rows.first_union + row, vcpu);
    union_scratch_.resize(std::max<size_t>(union_scratch_.size(), part.union_number + 1));
  }
  return number;
}

void Profile::Close(VcpuRef vcpu, uint32_t domain, Cluster& cluster) {
  AddToEvents(cluster);
  if (cluster.weights.empty()) return;
  ++closed_;
  const double n = SumCluster(cluster);
  SumTotals(cluster);
  SumLevels();
  sums_.cluster_squares[vcpu] += n * n;
  if (has_unions_) AddToUnions(vcpu);
  AddToModes(vcpu, cluster);
  AddToParts(sums_.totals, total_parts_);
  for (Level& level : levels_) {
    for (LevelRows* const rows : {&level.rows, &level.totals}) {
      AddToParts(rows->sums, rows->closing);
      rows->closing.clear();
    }
  }
  AddToParts(sums_.rows, parts_);
  AddToStrata(domain, cluster);
  total_parts_.clear();
  parts_.clear();
  cluster.weights.clear();
  cluster.moved.clear();
  cluster.total_weights.clear();
}

void Profile::AddToParts(RowSums& rows, const std::vector<uint32_t>& parts) const {
  for (const uint32_t number : parts) {
    Part& part = rows.parts[number];
    part.AddCluster(std::exchange(part.in_cluster, 0.0), sums_.strata.all[part.stratum].in_cluster);
  }
}

void Profile::AddToEvents(Cluster& cluster) {
  for (const EventWeight& entry : cluster.event_weights) {
    row_events_.Add(entry.row, entry.event, entry.weight);
    domain_events_.Add(entry.domain, entry.event, entry.weight);
    for (Level& level : levels_) {
      const uint32_t row = LevelRowOf(level.rows, sums_.rows, entry.row);
      if (row != kNotChosen) level.events.Add(row, entry.event, entry.weight);
    }
  }
  row_events_.EndCluster();
  domain_events_.EndCluster();
  for (Level& level : levels_) level.events.EndCluster();
  cluster.event_weights.clear();
}

void Profile::AddToPart(RowSums& rows, uint32_t number, double weight,
                        std::vector<uint32_t>& parts) const {
  Part& part = rows.parts[number];
  if (part.closing != closed_) {
    part.closing = closed_;
    parts.push_back(number);
  }
  part.in_cluster += weight;
}

void Profile::SumTotals(const Cluster& cluster) {
  for (const TotalWeight& entry : cluster.total_weights) {
    if (entry.level == 0) {
      AddToPart(sums_.totals, entry.part, entry.weight, total_parts_);
    } else {
      LevelRows& totals = levels_[entry.level - 1].totals;
      AddToPart(totals.sums, entry.part, entry.weight, totals.closing);
    }
  }
}

double Profile::SumCluster(const Cluster& cluster) {
  double n = 0;
  for (const PlaceWeight& entry : cluster.weights) {
    AddToPart(sums_.rows, entry.part, entry.weight, parts_);
    const Part& part = sums_.rows.parts[entry.part];
    Stratum& stratum = sums_.strata.all[part.stratum];
    stratum.in_cluster += entry.weight;
    if (stratum.of_vcpu != StratumUnions::kNone) stratum.length += entry.length;
    if (IsTraced(stratum.context.kind)) n += entry.weight;
  }
  return n;
}

void Profile::AddToModes(VcpuRef vcpu, const Cluster& cluster) {
  double all = 0;
  double in_xen = 0;
  for (const PlaceWeight& entry : cluster.weights) {
    if (!sums_.strata.all[sums_.rows.parts[entry.part].stratum].has_both_modes) continue;
    // A sample's mode is certain, whatever the influence of its places.
    all += entry.length;
    if (entry.in_xen) in_xen += entry.length;
  }
  if (all > 0) sums_.modes[vcpu].AddCluster(in_xen, all);
}

void Profile::AddUnionAmounts(const RowSums& rows, const std::vector<uint32_t>& parts) {
  for (const uint32_t number : parts) {
    const Part& part = rows.parts[number];
    if (part.union_number == StratumUnions::kNone) continue;
    double& in_union = union_scratch_[part.union_number];
    if (in_union == 0) union_amounts_.push_back({part.union_number, 0});
    in_union += part.in_cluster;
  }
}

void Profile::AddToUnions(VcpuRef vcpu) {
  strata_amounts_.clear();
  union_amounts_.clear();
  AddUnionAmounts(sums_.rows, parts_);
  AddUnionAmounts(sums_.totals, total_parts_);
  for (const Level& level : levels_) {
    AddUnionAmounts(level.rows.sums, level.rows.closing);
    AddUnionAmounts(level.totals.sums, level.totals.closing);
  }
  for (const uint32_t number : parts_) {
    Stratum& stratum = sums_.strata.all[sums_.rows.parts[number].stratum];
    if (stratum.of_vcpu == StratumUnions::kNone || stratum.length == 0) continue;  // or done
    strata_amounts_.push_back({stratum.of_vcpu, std::exchange(stratum.length, 0.0)});
  }
  for (StratumUnions::Amount& amount : union_amounts_) {
    amount.samples = std::exchange(union_scratch_[amount.number], 0.0);
  }
  sums_.strata.unions.AddCluster(vcpu, strata_amounts_, union_amounts_);
}

double Profile::AddMoved(const Cluster& cluster, uint32_t stratum) {
  double all = 0;
  for (const MovedWeight& entry : cluster.moved) {
    if (entry.stratum != stratum) continue;
    const uint32_t part = sums_.domains.PartOf(entry.domain, stratum);
    AddToPart(sums_.domains, part, entry.weight, moved_parts_);
    all += entry.weight;
  }
  AddToParts(sums_.domains, moved_parts_);
  moved_parts_.clear();
  return all;
}

void Profile::AddToStrata(uint32_t domain, const Cluster& cluster) {
  for (const uint32_t part : parts_) {
    const uint32_t number = sums_.rows.parts[part].stratum;
    Stratum& stratum = sums_.strata.all[number];
    const double in_stratum = stratum.in_cluster;
    if (in_stratum == 0) continue;  // done
    const double own = in_stratum - AddMoved(cluster, number);
    stratum.in_cluster = 0;
    const bool is_switch = stratum.context.kind == ContextKind::kSwitch;
    const uint32_t row = is_switch ? sums_.domains.Find({stratum.vcpu.domain.value}) : domain;
    sums_.domains.parts[sums_.domains.PartOf(row, number)].AddCluster(own, in_stratum);
    stratum.totals.n += in_stratum;
    stratum.totals.nn += in_stratum * in_stratum;
    ++stratum.totals.clusters;
  }
}

void Profile::SetDimensions(const KeyLayout& layout, const RowKey& key, ProfileRow& out) const {
  const auto name = [&](Dimension dimension) {
    return layout.Has(dimension) ? names_.all()[layout.Get(dimension, key)] : std::string();
  };
  out.domain = {static_cast<uint16_t>(layout.Get(Dimension::kDomain, key))};
  if (layout.Has(Dimension::kVcpu)) {
    const VcpuRef vcpu = UnpackVcpu(layout.Get(Dimension::kVcpu, key));
    out.domain = vcpu.domain;
    out.vcpu = vcpu.vcpu;
  }
  out.pcpu = {static_cast<uint32_t>(layout.Get(Dimension::kPcpu, key))};
  out.mode = static_cast<Mode>(layout.Get(Dimension::kMode, key));
  out.exit = layout.GetContext(key);
  out.image = name(Dimension::kImage);
  out.function = name(Dimension::kFunction);
  out.line = name(Dimension::kLine);
  out.address = layout.Get(Dimension::kAddress, key);
  out.page = layout.Get(Dimension::kPage, key);
  SetThread(layout, key, out);
  if (const uint64_t behalf = layout.Get(Dimension::kBehalf, key); behalf > 0) {
    out.behalf = DomainId{static_cast<uint16_t>(behalf - 1)};
  }
  out.stack = static_cast<uint32_t>(layout.Get(Dimension::kStack, key));
  out.placing = static_cast<Placement>(layout.Get(Dimension::kPlacing, key));
}

void Profile::SetThread(const KeyLayout& layout, const RowKey& key, ProfileRow& out) const {
  const uint64_t process = layout.Get(Dimension::kProcess, key);
  if (process < kFirstProcessOfThread) out.process = {static_cast<uint32_t>(process)};
  if (!by_thread_) return;
  const auto name = [&](Dimension dimension, uint64_t first, auto name_of) {
    const uint64_t number = layout.Get(dimension, key);
    return number > first ? (options_.threads->*name_of)(static_cast<uint32_t>(number - first))
                          : std::string();
  };
  out.thread = name(Dimension::kThread, 0, &ThreadSource::ThreadName);
  out.container = name(Dimension::kContainer, 0, &ThreadSource::ContainerName);
  out.process_of_thread =
      name(Dimension::kProcess, kFirstProcessOfThread, &ThreadSource::ProcessName);
}

std::vector<RatioEstimate> Profile::RatiosOf(const EventSums& events,
                                             std::optional<uint32_t> row) const {
  std::vector<RatioEstimate> ratios;
  for (const EventRatio& ratio : options_.ratios) {
    EventPair pair = events.PairOf(row, ratio);
    pair.complete = options_.complete;
    ratios.push_back(EstimateRatio(pair, ratio.scale));
  }
  return ratios;
}

void Profile::Describe(const RowSums& rows, const EventSums& events,
                       std::vector<ProfileRow>& out) const {
  for (uint32_t row = 0; row < out.size(); ++row) {
    SetDimensions(rows.layout, rows.keys[row], out[row]);
    out[row].ratios = RatiosOf(events, row);
    for (size_t event = 0; event < NumberOfEvents(options_); ++event) {
      out[row].event_samples.push_back(events.Samples(row, event));
    }
  }
}

ProfileSums Profile::TakeSums() {
  // In the order of vCPUs: the last digits of sums depend on theirs.
  std::vector<VcpuRef> vcpus;
  for (const auto& [vcpu, clusters] : clusters_) vcpus.push_back(vcpu);
  std::ranges::sort(vcpus);
  for (const VcpuRef vcpu : vcpus) {
    OpenClusters& clusters = clusters_[vcpu];
    for (Cluster& cluster : clusters.open) Close(vcpu, clusters.domain, cluster);
  }
  sums_.names = names_.all();
  return std::move(sums_);
}

void Profile::AddRowsOfTotals(const RowSums& totals, RowSums& rows) {
  for (uint32_t total = 0; total < totals.keys.size(); ++total) rows.Find(totals.keys[total]);
}

void Profile::SetTotals(const ProfileEstimator& estimator, const RowSums& totals, RowSums& sums,
                        std::vector<ProfileRow>& rows) {
  const std::vector<ProfileRow> of_totals = estimator.RowsOf(totals, /*exact=*/false);
  for (uint32_t total = 0; total < of_totals.size(); ++total) {
    const ProfileRow& from = of_totals[total];
    rows[sums.Find(totals.keys[total])].total = {from.samples, from.share, from.interval,
                                                 from.cycles};
  }
}

absl::StatusOr<ProfileResult> Profile::Finish() {
  sums_ = TakeSums();
  if (options_.totals) AddRowsOfTotals(sums_.totals, sums_.rows);
  ProfileResult result;
  result.has_totals = options_.totals;
  result.stacks = stacks_.Take();
  result.inlined = stacks_.inlined();
  result.exits = stacks_.exits();
  const ProfileEstimator estimator({.is_time = options_.is_time,
                                    .parts = options_.parts,
                                    .exact = std::ranges::all_of(options_.by, IsOfStrata)},
                                   sums_);
  result.rows = estimator.Rows();
  result.domains = estimator.Domains();
  if (options_.totals) SetTotals(estimator, sums_.totals, sums_.rows, result.rows);
  Describe(sums_.rows, row_events_, result.rows);
  Describe(sums_.domains, domain_events_, result.domains);
  SetSubtotals(estimator, result);
  result.ratios = RatiosOf(row_events_, std::nullopt);
  for (size_t event = 0; event < NumberOfEvents(options_); ++event) {
    result.event_samples.push_back(row_events_.AllSamples(event));
  }
  for (const auto& [why, samples] : unresolved_) result.unresolved.push_back({why, samples});
  std::ranges::sort(result.unresolved, [](const Unresolved& a, const Unresolved& b) {
    return std::tie(b.samples, a.why) < std::tie(a.samples, b.why);
  });
  XENOSCOPE_RETURN_IF_ERROR(estimator.AddTotals(result));
  if (!options_.choice.is_chosen) XENOSCOPE_RETURN_IF_ERROR(CheckSubtotals(result));
  return result;
}

}  // namespace xenoscope::correlate
