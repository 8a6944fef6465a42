#include "store/own_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "correlate/placing/placed_sample.h"
#include "store/gather_trace.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

// The counters that say nothing of the host but the length of its trace.
constexpr std::array kSharedCounters = {kTracedCounter, kHypercallsCounter, kTracedCyclesCounter};
// How the trace's analyses call the runners that a vCPU waited for beside those that they count.
constexpr std::string_view kOtherRunners = "(others)";

class OwnPartTaker {
 public:
  OwnPartTaker(const Slice& slice, const Dictionary& dictionary, const Owner& owner)
      : slice_(slice), dictionary_(dictionary), owner_(owner) {}

  KeyedSlice Take() {
    out_.slice.head = slice_.head;
    out_.slice.head.host = kAnyHost;
    out_.slice.count = slice_.count;
    out_.slice.gaps_ns = slice_.gaps_ns;
    FindXenImages();
    NameOthers();
    const SliceSums& from = slice_.sums;
    SliceSums& to = out_.slice.sums;
    TakeRows(from.strata, to.strata);
    TakeUntraced();
    TakeRows(from.vcpus, to.vcpus);
    TakeRows(from.pairs, to.pairs);
    for (PairSums& pair : to.pairs) std::tie(pair.a, pair.b) = std::minmax({pair.a, pair.b});
    TakeRows(from.parts, to.parts);
    TakeRows(from.unions, to.unions);
    TakeRows(from.crosses, to.crosses);
    TakeRows(from.trace, to.trace);
    TakeFindings();
    TakeCounters();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool IsOwn(VcpuNumber vcpu) const {
    return vcpu != kAllVcpus && dictionary_.vcpus[vcpu].domain == owner_.domain;
  }

  // Images are Xen's if they have code of Xen's alone.
  void FindXenImages() {
    std::set<std::string> others;
    for (const PartSums& part : slice_.sums.parts) {
      if (!IsOwn(part.vcpu)) continue;
      const CodeKey& code = dictionary_.codes[part.code];
      (code.mode == Mode::kXen ? xen_images_ : others).insert(code.image);
    }
    for (const std::string& image : others) xen_images_.erase(image);
    xen_images_.erase("");
  }

  // Numbers the domains without a name that the owner waited for.
  void NameOthers() {
    names_ = owner_.names;
    names_.try_emplace(owner_.domain, "this domain");
    for (const std::string_view nobody : {std::string_view(), kOtherRunners}) {
      names_[std::string(nobody)] = nobody;
    }
    std::map<std::string, double> waits;
    for (const TraceSums& row : slice_.sums.trace) {
      if (row.figure != kWaitFigure || !IsOwn(row.vcpu) || names_.contains(row.other)) continue;
      waits[row.other] += row.cycles;
    }
    std::vector<std::pair<std::string, double>> longest(waits.begin(), waits.end());
    std::ranges::stable_sort(longest, std::ranges::greater(),
                             &std::pair<std::string, double>::second);
    size_t number = 0;
    for (const auto& [domain, cycles] : longest) {
      names_[domain] = fmt::format("other {}", ++number);
    }
  }

  // Rows of the domain's vCPUs, with keys and names of the part's own.
  template <typename Sums>
  void TakeRows(const std::vector<Sums>& rows, std::vector<Sums>& out) {
    for (const Sums& row : rows) {
      if (IsOwn(row.vcpu)) AddRow(row, out);
    }
  }

  template <typename Sums>
  void AddRow(Sums row, std::vector<Sums>& out) {
    std::apply([this](auto&... fields) { (this->Rename(fields), ...); }, Table<Sums>::Fields(row));
    if constexpr (std::is_same_v<Sums, TraceSums>) row.other = NameOf(row.other);
    out.push_back(std::move(row));
  }

  template <typename Field>
  void Rename(Field& /*figure*/) {}
  void Rename(VcpuNumber& vcpu) {
    if (vcpu == kAllVcpus) return;
    const VcpuKey& key = dictionary_.vcpus[vcpu];
    vcpu = out_.dictionary.vcpus.Intern({NameOf(key.domain), key.number});
  }
  void Rename(ContextNumber& context) {
    if (context == kAllContexts) return;
    context = out_.dictionary.contexts.Intern(dictionary_.contexts[context]);
  }
  void Rename(CodeNumber& code) {
    CodeKey key = dictionary_.codes[code];
    if (xen_images_.contains(key.image)) key.image = kXenImage;
    code = out_.dictionary.codes.Intern(key);
  }
  [[nodiscard]] std::string NameOf(const std::string& domain) const {
    const auto found = names_.find(domain);
    return found == names_.end() ? std::string() : found->second;
  }

  // The strata of all vCPUs: their samples in the domain's rows are its own part of them.
  void TakeUntraced() {
    absl::flat_hash_map<ContextNumber, correlate::ClusterTotals> own;
    for (const PartSums& part : slice_.sums.parts) {
      if (!IsOwn(part.vcpu)) continue;
      own[part.context].n += part.sums.x;
      own[part.context].nn += part.sums.xx;
    }
    // The squares of all of a vCPU's samples are more than those of its rows.
    for (const CrossSums& cross : slice_.sums.crosses) {
      if (cross.columns == 0 && IsOwn(cross.vcpu)) own[cross.context].nn += cross.xx;
    }
    for (StratumSums stratum : slice_.sums.strata) {
      if (stratum.vcpu != kAllVcpus || stratum.totals.n <= 0) continue;
      correlate::ClusterTotals totals = own[stratum.context];
      if (totals.n <= 0) continue;
      const double part = totals.n / stratum.totals.n;
      stratum.cycles *= part;
      stratum.stays *= part;
      // How many clusters are the domain's is not known.
      const double clusters = std::round(part * static_cast<double>(stratum.totals.clusters));
      totals.clusters = static_cast<uint64_t>(std::max(clusters, 1.0));
      stratum.totals = totals;
      AddRow(stratum, out_.slice.sums.strata);
    }
  }

  void TakeFindings() {
    for (const TraceSums& row : slice_.sums.trace) {
      if (row.figure == kFindingFigure && row.other == owner_.domain) {
        AddRow(row, out_.slice.sums.trace);
      }
    }
  }

  void TakeCounters() {
    std::vector<Counter>& counters = out_.slice.sums.counters;
    for (const Counter& counter : slice_.sums.counters) {
      if (std::ranges::find(kSharedCounters, counter.name) != kSharedCounters.end()) {
        counters.push_back(counter);
      }
    }
    double placed = 0;
    double untraced = 0;
    for (const StratumSums& stratum : out_.slice.sums.strata) {
      (stratum.vcpu == kAllVcpus ? untraced : placed) += stratum.totals.n;
    }
    // Slices do not say of each domain how its samples were placed: the weakest way is one.
    using correlate::Placement;
    AddCounter("samples", placed + untraced);
    AddCounter(fmt::format("placed.{}", ToString(Placement::kBracketed)), placed);
    AddCounter(fmt::format("placed.{}", ToString(Placement::kUntraced)), untraced);
  }

  void AddCounter(std::string name, double samples) {
    if (samples < 0.5) return;
    out_.slice.sums.counters.push_back({std::move(name), std::round(samples)});
  }

  const Slice& slice_;
  const Dictionary& dictionary_;
  const Owner& owner_;
  std::set<std::string> xen_images_;
  std::map<std::string, std::string> names_;  // of domains in the part, by those in the slice
  KeyedSlice out_;
};

}  // namespace

KeyedSlice TakeOwnPart(const Slice& slice, const Dictionary& dictionary, const Owner& owner) {
  return OwnPartTaker(slice, dictionary, owner).Take();
}

}  // namespace xenoscope::store
