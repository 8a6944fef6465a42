#include "store/clickhouse/sql_lists.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/mode.h"
#include "correlate/context.h"

namespace xenoscope::store {
namespace {

struct ListColumn {
  std::string_view name;
  std::string_view type;
};

// By ContextKind; SQL has names.
constexpr std::string_view kContextType =
    "Enum8('running' = 0, 'guest' = 1, 'exit' = 2, 'resume' = 3, 'transition' = 4, 'lost' = 5, "
    "'untraced' = 6, 'switch' = 7, 'unsampled switch' = 8)";
// By TraceFigure.
constexpr std::string_view kFigureType =
    "Enum8('runstate' = 0, 'wait' = 1, 'exit' = 2, 'finding' = 3, 'hypercall' = 4)";

// The columns of each table, in the order of its keys and sums below.
constexpr std::array kStratumColumns = {
    ListColumn{"domain", "String"},  ListColumn{"context", kContextType},
    ListColumn{"exit", "String"},    ListColumn{"both_modes", "UInt8"},
    ListColumn{"cycles", "Float64"}, ListColumn{"n", "Float32"}};
// Not by function first: then domains and exits, which change seldom, would take more space.
constexpr std::array kPartColumns = {
    ListColumn{"domain", "String"},
    ListColumn{"context", kContextType},
    ListColumn{"exit", "String"},
    ListColumn{"both_modes", "UInt8"},
    ListColumn{"mode", "Enum8('user' = 0, 'kernel' = 1, 'xen' = 2)"},
    ListColumn{"image", "String"},
    ListColumn{"function", "String"},
    ListColumn{"x", "Float32"}};
constexpr std::array kCounterColumns = {ListColumn{"name", "String"},
                                        ListColumn{"value", "Float64"}};
constexpr std::array kTraceColumns = {
    ListColumn{"domain", "String"}, ListColumn{"figure", kFigureType},
    ListColumn{"label", "String"},  ListColumn{"part", "String"},
    ListColumn{"other", "String"},  ListColumn{"count", "Float64"},
    ListColumn{"cycles", "Float64"}};

struct List {
  std::string_view name;
  std::span<const ListColumn> columns;
};
constexpr std::array<List, 4> kLists = {
    List{"strata", kStratumColumns}, List{"parts", kPartColumns}, List{"counters", kCounterColumns},
    List{"trace", kTraceColumns}};

// Domain, context, exit, both modes.
using Place = std::tuple<std::string_view, int8_t, std::string_view, uint8_t>;

std::string_view DomainOf(VcpuNumber vcpu, const Dictionary& dictionary) {
  return vcpu == kAllVcpus ? std::string_view() : dictionary.vcpus[vcpu].domain;
}

Place PlaceOf(VcpuNumber vcpu, ContextNumber context, const Dictionary& dictionary) {
  const ContextKey& key = dictionary.contexts[context];
  return {DomainOf(vcpu, dictionary), static_cast<int8_t>(key.kind), key.exit,
          static_cast<uint8_t>(key.has_both_modes)};
}

// Appends a column: a field of all rows.
template <typename Rows, typename Field>
void AppendColumn(const Rows& rows, Field field, RowBinaryWriter& out) {
  out.PutLength(rows.size());
  for (const auto& row : rows) out.Put(field(row));
}

// Appends the columns of rows, which are by their keys.
template <typename Rows>
void AppendColumns(const Rows& rows, RowBinaryWriter& out) {
  using Keys = typename Rows::key_type;
  using Sums = typename Rows::mapped_type;
  [&]<size_t... kField>(std::index_sequence<kField...> /*keys*/) {
    (AppendColumn(
         rows, [](const auto& row) { return std::get<kField>(row.first); }, out),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Keys>>());
  [&]<size_t... kField>(std::index_sequence<kField...> /*sums*/) {
    (AppendColumn(
         rows, [](const auto& row) { return std::get<kField>(row.second); }, out),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Sums>>());
}

void AppendStrata(const SliceSums& sums, const Dictionary& dictionary, RowBinaryWriter& out) {
  absl::btree_map<Place, std::tuple<double, float>> rows;
  for (const StratumSums& stratum : sums.strata) {
    auto& [cycles, n] = rows[PlaceOf(stratum.vcpu, stratum.context, dictionary)];
    cycles += stratum.cycles;
    n += static_cast<float>(stratum.totals.n);
  }
  AppendColumns(rows, out);
}

void AppendParts(const SliceSums& sums, const Dictionary& dictionary, RowBinaryWriter& out) {
  using Code = std::tuple<int8_t, std::string_view, std::string_view>;
  absl::btree_map<decltype(std::tuple_cat(Place(), Code())), std::tuple<float>> rows;
  for (const PartSums& part : sums.parts) {
    const CodeKey& key = dictionary.codes[part.code];
    const Code code(static_cast<int8_t>(key.mode), key.image, key.function);
    auto& [x] = rows[std::tuple_cat(PlaceOf(part.vcpu, part.context, dictionary), code)];
    x += static_cast<float>(part.sums.x);
  }
  AppendColumns(rows, out);
}

void AppendCounters(const SliceSums& sums, RowBinaryWriter& out) {
  absl::btree_map<std::tuple<std::string_view>, std::tuple<double>> rows;
  for (const Counter& counter : sums.counters) std::get<0>(rows[{counter.name}]) += counter.value;
  AppendColumns(rows, out);
}

void AppendTrace(const SliceSums& sums, const Dictionary& dictionary, RowBinaryWriter& out) {
  using Key =
      std::tuple<std::string_view, int8_t, std::string_view, std::string_view, std::string_view>;
  absl::btree_map<Key, std::tuple<double, double>> rows;
  for (const TraceSums& row : sums.trace) {
    auto& [count, cycles] = rows[{DomainOf(row.vcpu, dictionary), static_cast<int8_t>(row.figure),
                                  row.name, row.part, row.other}];
    count += row.count;
    cycles += row.cycles;
  }
  AppendColumns(rows, out);
}

}  // namespace

std::string SqlListTypes() {
  std::string types;
  for (const List& list : kLists) {
    std::string columns;
    for (const ListColumn& column : list.columns) {
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", column.name, column.type);
    }
    types += fmt::format("{}{} Nested({})", types.empty() ? "" : ", ", list.name, columns);
  }
  return types;
}

std::string SqlListColumns() {
  std::string names;
  for (const List& list : kLists) {
    for (const ListColumn& column : list.columns) {
      names += fmt::format("{}{}.{}", names.empty() ? "" : ", ", list.name, column.name);
    }
  }
  return names;
}

void AppendSqlLists(const SliceSums& sums, const Dictionary& dictionary, RowBinaryWriter& out) {
  AppendStrata(sums, dictionary, out);
  AppendParts(sums, dictionary, out);
  AppendCounters(sums, out);
  AppendTrace(sums, dictionary, out);
}

}  // namespace xenoscope::store
