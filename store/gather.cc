#include "store/gather.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/container/btree_map.h"
#include "store/bounded_text.h"
#include "store/counters.h"
#include "trace/exit_name.h"

namespace xenoscope::store {
namespace {

using correlate::ContextKind;
using correlate::Dimension;
using correlate::ProfileSums;
using correlate::Stratum;
using correlate::StratumUnions;

// Differences of sums below this part of the sums are those of rounding.
constexpr double kRounding = 1e-9;

std::vector<Dimension> ColumnsOf(uint8_t columns) {
  std::vector<Dimension> by = {Dimension::kDomain, Dimension::kVcpu};
  if ((columns & kModeColumn) != 0) by.push_back(Dimension::kMode);
  if ((columns & kImageColumn) != 0) by.push_back(Dimension::kImage);
  if ((columns & kFunctionColumn) != 0) by.push_back(Dimension::kFunction);
  return by;
}

// Reads the sums of a profile by some columns with keys of the dictionary.
class NamedSums {
 public:
  NamedSums(const ProfileSums& sums, uint8_t columns, trace::Vendor vendor,
            const std::function<std::string(DomainId)>& label, Dictionary& dictionary)
      : sums_(sums), vendor_(vendor), label_(label), dictionary_(dictionary) {
    const correlate::KeyLayout& layout = sums.rows.layout;
    for (uint32_t row = 0; row < sums.rows.keys.size(); ++row) {
      const correlate::RowKey& key = sums.rows.keys[row];
      CodeKey code;
      if ((columns & kModeColumn) != 0) {
        code.mode = static_cast<Mode>(layout.Get(Dimension::kMode, key));
      }
      if ((columns & kImageColumn) != 0) code.image = Name(layout.Get(Dimension::kImage, key));
      if ((columns & kFunctionColumn) != 0) {
        code.function = Name(layout.Get(Dimension::kFunction, key));
      }
      codes_.push_back(dictionary.codes.Intern(code));
      vcpus_.push_back(VcpuOf({{static_cast<uint16_t>(layout.Get(Dimension::kDomain, key))},
                               {static_cast<uint32_t>(layout.Get(Dimension::kVcpu, key))}}));
    }
    for (const Stratum& stratum : sums.strata.all) {
      const correlate::Context& context = stratum.context;
      std::string exit;
      if (context.kind == ContextKind::kExit) {
        exit = trace::ExitName(vendor_, context.nested, context.reason);
      } else if (context.nested) {
        exit = ContextKey::kNested;
      }
      contexts_.push_back(
          dictionary.contexts.Intern({context.kind, std::move(exit), stratum.has_both_modes}));
    }
  }

  const ProfileSums& sums() const { return sums_; }
  VcpuNumber VcpuOf(VcpuRef vcpu) {
    return dictionary_.vcpus.Intern({BoundedName(label_(vcpu.domain)), vcpu.vcpu.value});
  }
  // By numbers of rows and strata.
  CodeNumber CodeOf(uint32_t row) const { return codes_[row]; }
  VcpuNumber VcpuOf(uint32_t row) const { return vcpus_[row]; }
  ContextNumber ContextOf(uint32_t stratum) const { return contexts_[stratum]; }
  bool IsTraced(uint32_t stratum) const {
    return correlate::IsTraced(sums_.strata.all[stratum].context.kind);
  }

 private:
  std::string Name(uint64_t number) const { return BoundedName(sums_.names[number]); }

  const ProfileSums& sums_;
  trace::Vendor vendor_;
  const std::function<std::string(DomainId)>& label_;
  Dictionary& dictionary_;
  std::vector<CodeNumber> codes_;
  std::vector<VcpuNumber> vcpus_;
  std::vector<ContextNumber> contexts_;
};

void GatherStrata(NamedSums& named, SliceSums& out) {
  const correlate::Strata& strata = named.sums().strata;
  for (uint32_t number = 0; number < strata.all.size(); ++number) {
    const Stratum& stratum = strata.all[number];
    if (stratum.size == 0 && stratum.stays == 0 && stratum.totals.n == 0) continue;
    const VcpuNumber vcpu = named.IsTraced(number) ? named.VcpuOf(stratum.vcpu) : kAllVcpus;
    out.strata.push_back(
        {vcpu, named.ContextOf(number), stratum.size, stratum.stays, stratum.totals});
  }
}

// The strata of a vCPU that are treated together.
using StrataOfVcpus = absl::btree_map<VcpuRef, std::vector<uint32_t>>;

StrataOfVcpus UnitedStrata(const correlate::Strata& strata) {
  StrataOfVcpus united;
  for (uint32_t number = 0; number < strata.all.size(); ++number) {
    const Stratum& stratum = strata.all[number];
    if (stratum.of_vcpu != StratumUnions::kNone) united[stratum.vcpu].push_back(number);
  }
  return united;
}

void GatherVcpus(NamedSums& named, const StrataOfVcpus& united, SliceSums& out) {
  const ProfileSums& sums = named.sums();
  absl::btree_map<VcpuRef, VcpuSums> vcpus;
  for (const auto& [vcpu, squares] : sums.cluster_squares) vcpus[vcpu].traced_squares = squares;
  for (const auto& [vcpu, modes] : sums.modes) vcpus[vcpu].modes = modes;
  for (const Stratum& stratum : sums.strata.all) {
    const auto median = sums.median_stays.find(stratum.vcpu);
    if (stratum.context.kind != ContextKind::kGuest || median == sums.median_stays.end()) continue;
    vcpus[stratum.vcpu].stays += stratum.stays;
    vcpus[stratum.vcpu].median_stays += stratum.stays * median->second;
  }
  for (const auto& [vcpu, strata] : united) {
    vcpus[vcpu].clusters = sums.strata.unions.SumsOf(vcpu);
    for (size_t i = 0; i < strata.size(); ++i) {
      for (size_t j = 0; j <= i; ++j) {
        const double nn = sums.strata.unions.ProductsOf(vcpu, sums.strata.all[strata[i]].of_vcpu,
                                                        sums.strata.all[strata[j]].of_vcpu);
        if (nn == 0) continue;
        const auto [a, b] = std::minmax({named.ContextOf(strata[i]), named.ContextOf(strata[j])});
        out.pairs.push_back({named.VcpuOf(vcpu), a, b, nn});
      }
    }
  }
  for (auto& [vcpu, entry] : vcpus) {
    entry.vcpu = named.VcpuOf(vcpu);
    out.vcpus.push_back(entry);
  }
}

using PartKey = std::tuple<VcpuNumber, ContextNumber, CodeNumber>;

void GatherParts(const NamedSums& named, const StrataOfVcpus& united, SliceSums& out) {
  const ProfileSums& sums = named.sums();
  const StratumUnions& unions = sums.strata.unions;
  absl::btree_map<PartKey, PartSums> parts;
  const auto part_of = [&](uint32_t row, uint32_t stratum) -> PartSums& {
    const PartKey key{named.VcpuOf(row), named.ContextOf(stratum), named.CodeOf(row)};
    PartSums& part = parts[key];
    std::tie(part.vcpu, part.context, part.code) = key;
    return part;
  };
  std::vector<bool> done(sums.rows.keys.size());
  for (const correlate::Part& part : sums.rows.parts) {
    correlate::ClusterSums& total = part_of(part.row, part.stratum).sums;
    total.x += part.sums.x;
    total.xx += part.sums.xx;
    total.xn += part.sums.xn;
    if (part.union_number == StratumUnions::kNone || done[part.row]) continue;
    done[part.row] = true;
    out.unions.push_back(
        {named.VcpuOf(part.row), named.CodeOf(part.row), unions.SumsOf(part.union_number)});
    for (const uint32_t stratum : united.at(sums.strata.all[part.stratum].vcpu)) {
      const double xn = unions.ProductsOf(part.union_number, sums.strata.all[stratum].of_vcpu);
      if (xn != 0) part_of(part.row, stratum).union_xn += xn;
    }
  }
  for (const auto& [key, part] : parts) out.parts.push_back(part);
}

// The squares by fewer columns: those of rows by all columns, or of rows by the fewer ones.
using Squares = absl::btree_map<PartKey, double>;

// Adds the squares of the sums' rows, as rows by `columns`.
Squares SquaresOf(const NamedSums& named, uint8_t columns, Dictionary& dictionary) {
  const ProfileSums& sums = named.sums();
  Squares squares;
  std::vector<bool> done(sums.rows.keys.size());
  for (const correlate::Part& part : sums.rows.parts) {
    const VcpuNumber vcpu = named.VcpuOf(part.row);
    const CodeNumber code =
        dictionary.codes.Intern(Restrict(dictionary.codes[named.CodeOf(part.row)], columns));
    // By no column, rows are whole strata: where these are traced their totals have the squares.
    if (columns == 0 && named.IsTraced(part.stratum)) continue;
    squares[{vcpu, named.ContextOf(part.stratum), code}] += part.sums.xx;
    if (part.union_number == StratumUnions::kNone || done[part.row]) continue;
    done[part.row] = true;
    squares[{vcpu, kAllContexts, code}] += sums.strata.unions.SumsOf(part.union_number).xx;
  }
  return squares;
}

void GatherCrosses(const NamedSums& all, const NamedSums& fewer, uint8_t columns,
                   Dictionary& dictionary, SliceSums& out) {
  const Squares apart = SquaresOf(all, columns, dictionary);
  for (const auto& [key, xx] : SquaresOf(fewer, columns, dictionary)) {
    const auto of_rows = apart.find(key);
    const double cross = xx - (of_rows == apart.end() ? 0 : of_rows->second);
    if (std::abs(cross) <= kRounding * xx) continue;
    const auto& [vcpu, context, code] = key;
    out.crosses.push_back({columns, vcpu, context, code, cross});
  }
}

}  // namespace

std::vector<std::vector<Dimension>> GatheredColumns() {
  std::vector<std::vector<Dimension>> all;
  for (uint8_t columns = 0; columns <= kAllCodeColumns; ++columns) {
    all.push_back(ColumnsOf(columns));
  }
  return all;
}

SliceSums Gather(const profile::SampleSet& samples, const profile::ProfileResults& results,
                 const std::function<std::string(DomainId)>& label, Dictionary& dictionary) {
  SliceSums out;
  NamedSums all(results.sums[kAllCodeColumns], kAllCodeColumns, samples.vendor, label, dictionary);
  const StrataOfVcpus united = UnitedStrata(all.sums().strata);
  GatherStrata(all, out);
  GatherVcpus(all, united, out);
  GatherParts(all, united, out);
  for (uint8_t columns = 0; columns < kAllCodeColumns; ++columns) {
    const NamedSums fewer(results.sums[columns], columns, samples.vendor, label, dictionary);
    GatherCrosses(all, fewer, columns, dictionary, out);
  }
  out.counters = CountersOf(samples, results);
  return out;
}

}  // namespace xenoscope::store
