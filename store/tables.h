// The tables of a store: one for each kind of sums of a slice. Back ends read and write them by
// these descriptions.
#pragma once

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "absl/status/status.h"
#include "store/slice.h"

namespace xenoscope::store {

// Table<Sums> has the table's name, its columns with those of the key first, the member of
// SliceSums that has its rows, and a row's fields in the order of the columns. Sums of a table that
// is not kExact say only how uncertain something is, or are few samples in parts: a back end may
// round them to 24 significant bits.
template <typename Sums>
struct Table;

template <>
struct Table<StratumSums> {
  static constexpr std::string_view kName = "stratum";
  static constexpr bool kExact = true;
  static constexpr size_t kKeys = 2;
  static constexpr std::array<std::string_view, 7> kColumns = {
      "vcpu", "context", "cycles", "stays", "n", "nn", "clusters"};
  static constexpr auto kRows = &SliceSums::strata;
  static auto Fields(auto& row) {
    return std::tie(row.vcpu, row.context, row.cycles, row.stays, row.totals.n, row.totals.nn,
                    row.totals.clusters);
  }
};

template <>
struct Table<VcpuSums> {
  static constexpr std::string_view kName = "vcpu_sum";
  static constexpr bool kExact = true;
  static constexpr size_t kKeys = 1;
  // decile_stays has medians: stores keep the name of what was there at first, the lower decile.
  static constexpr std::array<std::string_view, 13> kColumns = {
      "vcpu",   "clusters", "samples",  "squares",        "traced_squares", "xen_x",       "xen_xx",
      "xen_xn", "modes_n",  "modes_nn", "modes_clusters", "stays",          "decile_stays"};
  static constexpr auto kRows = &SliceSums::vcpus;
  static auto Fields(auto& row) {
    return std::tie(row.vcpu, row.clusters.clusters, row.clusters.samples, row.clusters.squares,
                    row.traced_squares, row.modes.xen.x, row.modes.xen.xx, row.modes.xen.xn,
                    row.modes.all.n, row.modes.all.nn, row.modes.all.clusters, row.stays,
                    row.median_stays);
  }
};

template <>
struct Table<PairSums> {
  static constexpr std::string_view kName = "stratum_pair";
  static constexpr bool kExact = false;
  static constexpr size_t kKeys = 3;
  static constexpr std::array<std::string_view, 4> kColumns = {"vcpu", "a", "b", "nn"};
  static constexpr auto kRows = &SliceSums::pairs;
  static auto Fields(auto& row) { return std::tie(row.vcpu, row.a, row.b, row.nn); }
};

template <>
struct Table<PartSums> {
  static constexpr std::string_view kName = "part";
  static constexpr bool kExact = false;
  static constexpr size_t kKeys = 3;
  static constexpr std::array<std::string_view, 7> kColumns = {"vcpu", "context", "code",    "x",
                                                               "xx",   "xn",      "union_xn"};
  static constexpr auto kRows = &SliceSums::parts;
  static auto Fields(auto& row) {
    return std::tie(row.vcpu, row.context, row.code, row.sums.x, row.sums.xx, row.sums.xn,
                    row.union_xn);
  }
};

template <>
struct Table<UnionSums> {
  static constexpr std::string_view kName = "code_sum";
  static constexpr bool kExact = false;
  static constexpr size_t kKeys = 2;
  static constexpr std::array<std::string_view, 4> kColumns = {"vcpu", "code", "xx", "xn"};
  static constexpr auto kRows = &SliceSums::unions;
  static auto Fields(auto& row) {
    return std::tie(row.vcpu, row.code, row.sums.xx, row.sums.xn_all);
  }
};

template <>
struct Table<CrossSums> {
  static constexpr std::string_view kName = "cross_sum";
  static constexpr bool kExact = false;
  static constexpr size_t kKeys = 4;
  static constexpr std::array<std::string_view, 5> kColumns = {"columns", "vcpu", "context", "code",
                                                               "xx"};
  static constexpr auto kRows = &SliceSums::crosses;
  static auto Fields(auto& row) {
    return std::tie(row.columns, row.vcpu, row.context, row.code, row.xx);
  }
};

template <>
struct Table<Counter> {
  static constexpr std::string_view kName = "counter";
  static constexpr bool kExact = true;
  static constexpr size_t kKeys = 1;
  static constexpr std::array<std::string_view, 2> kColumns = {"name", "value"};
  static constexpr auto kRows = &SliceSums::counters;
  static auto Fields(auto& row) { return std::tie(row.name, row.value); }
};

template <>
struct Table<TraceSums> {
  static constexpr std::string_view kName = "trace";
  static constexpr bool kExact = true;
  static constexpr size_t kKeys = 5;
  static constexpr std::array<std::string_view, 7> kColumns = {"figure", "vcpu",  "label", "part",
                                                               "other",  "count", "cycles"};
  static constexpr auto kRows = &SliceSums::trace;
  static auto Fields(auto& row) {
    return std::tie(row.figure, row.vcpu, row.name, row.part, row.other, row.count, row.cycles);
  }
};

// Calls visit.template operator()<Sums>() for each table, and returns the first error.
template <typename Visitor>
absl::Status ForEachTable(Visitor visit) {
  absl::Status status;
  const auto go_on = [&]<typename Sums>(std::type_identity<Sums> /*table*/) {
    status = visit.template operator()<Sums>();
    return status.ok();
  };
  (void)(go_on(std::type_identity<StratumSums>()) && go_on(std::type_identity<VcpuSums>()) &&
         go_on(std::type_identity<PairSums>()) && go_on(std::type_identity<PartSums>()) &&
         go_on(std::type_identity<UnionSums>()) && go_on(std::type_identity<CrossSums>()) &&
         go_on(std::type_identity<Counter>()) && go_on(std::type_identity<TraceSums>()));
  return status;
}

}  // namespace xenoscope::store
