#include "store/packed_sums.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

template <typename Sums>
using FieldsOf = decltype(Table<Sums>::Fields(std::declval<Sums&>()));
template <typename Sums, size_t kField>
using FieldOf = std::decay_t<std::tuple_element_t<kField, FieldsOf<Sums>>>;
// What stands for a sum in its column.
template <typename Sums, size_t kField>
using StoredOf =
    std::conditional_t<Table<Sums>::kExact || !std::is_same_v<FieldOf<Sums, kField>, double>,
                       FieldOf<Sums, kField>, float>;

template <typename Sums>
constexpr size_t kFields = std::tuple_size_v<FieldsOf<Sums>>;

// Calls visit.operator()<Field>() for the fields [kFirst, kEnd), and returns the first error.
template <size_t kFirst, size_t kEnd, typename Visitor>
absl::Status ForEachField(Visitor visit) {
  absl::Status status;
  [&]<size_t... kField>(std::index_sequence<kField...> /*fields*/) {
    (void)((status = visit.template operator()<kFirst + kField>(), status.ok()) && ...);
  }
  (std::make_index_sequence<kEnd - kFirst>());
  return status;
}

// The bytes of a row in all columns together.
template <typename Sums>
constexpr size_t kRowBytes = []<size_t... kField>(std::index_sequence<kField...> /*sums*/) {
  constexpr size_t kKeys = Table<Sums>::kKeys;
  return kKeys * sizeof(uint32_t) + (sizeof(StoredOf<Sums, kKeys + kField>) + ...);
}
(std::make_index_sequence<kFields<Sums> - Table<Sums>::kKeys>());

template <typename Sums>
using Ids = std::array<uint32_t, Table<Sums>::kKeys>;

// Returns the numbers in the file of each row's keys.
template <typename Sums>
absl::StatusOr<std::vector<Ids<Sums>>> IdsOf(const std::vector<Sums>& rows, KeyWriter& keys) {
  std::vector<Ids<Sums>> ids(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const absl::Status found = ForEachField<0, Table<Sums>::kKeys>([&]<size_t kField>() {
      const auto& key = std::get<kField>(Table<Sums>::Fields(rows[i]));
      if constexpr (std::is_arithmetic_v<FieldOf<Sums, kField>>) {
        ids[i][kField] = key;
        return absl::OkStatus();
      } else {
        const absl::StatusOr<EntryId> id = keys.IdOf(key);
        if (id.ok()) ids[i][kField] = *id;
        return id.status();
      }
    });
    if (!found.ok()) return found;
  }
  return ids;
}

template <typename Sums>
absl::Status PackTable(const std::vector<Sums>& rows, KeyWriter& keys, PlaneWriter& out) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<Ids<Sums>> ids, IdsOf(rows, keys));
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  // Rows of one key, which only damaged slices have, keep their order.
  std::ranges::stable_sort(order, {}, [&](uint32_t row) { return ids[row]; });
  out.Number(static_cast<uint32_t>(rows.size()));
  std::vector<uint32_t> column(rows.size());
  for (size_t key = 0; key < Table<Sums>::kKeys; ++key) {
    for (size_t i = 0; i < order.size(); ++i) column[i] = ids[order[i]][key];
    out.Differences(column);
  }
  return ForEachField<Table<Sums>::kKeys, kFields<Sums>>([&]<size_t kField>() {
    std::vector<StoredOf<Sums, kField>> values;
    values.reserve(order.size());
    for (const uint32_t row : order) {
      values.push_back(
          static_cast<StoredOf<Sums, kField>>(std::get<kField>(Table<Sums>::Fields(rows[row]))));
    }
    out.Column(std::span<const StoredOf<Sums, kField>>(values));
    return absl::OkStatus();
  });
}

absl::Status Truncated() {
  return InvalidError("the store is damaged: the sums of a slice end too early");
}

// Sets a field of the rows to the keys with these numbers.
template <typename Sums, size_t kField>
absl::Status SetKeys(std::span<const EntryId> ids, KeyReader& keys, std::vector<Sums>& rows) {
  using Key = FieldOf<Sums, kField>;
  Key key{};
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || ids[i] != ids[i - 1]) {
      if constexpr (std::is_arithmetic_v<Key>) {
        key = static_cast<Key>(ids[i]);
        if (!std::cmp_equal(key, ids[i])) {
          return InvalidError("the store is damaged: the number {} is out of range", ids[i]);
        }
      } else {
        absl::Status read = keys.Read(ids[i], key);
        if (!read.ok()) return read;
      }
    }
    std::get<kField>(Table<Sums>::Fields(rows[i])) = key;
  }
  return absl::OkStatus();
}

template <typename Sums>
bool IsWanted(const WantedSums& wanted) {
  if (std::is_same_v<Sums, Counter>) return true;
  if (std::is_same_v<Sums, TraceSums>) return wanted.trace;
  const bool of_unions = std::is_same_v<Sums, UnionSums> || std::is_same_v<Sums, PairSums>;
  return wanted.profile && (wanted.unions || !of_unions);
}

}  // namespace

absl::Status PackTables(const SliceSums& sums, KeyWriter& keys, PlaneWriter& out) {
  return ForEachTable(
      [&]<typename Sums>() { return PackTable(sums.*Table<Sums>::kRows, keys, out); });
}

absl::StatusOr<std::string> Pack(const SliceSums& sums, KeyWriter& keys) {
  PlaneWriter out;
  XENOSCOPE_RETURN_IF_ERROR(PackTables(sums, keys, out));
  return out.Compressed();
}

template <typename Value>
std::vector<Value>& Unpacker::ColumnOf(size_t field) {
  if constexpr (std::is_same_v<Value, float>) return floats_.at(field);
  if constexpr (std::is_same_v<Value, double>) return doubles_.at(field);
  if constexpr (std::is_same_v<Value, uint64_t>) return numbers_.at(field);
}

template <typename Sums>
absl::Status Unpacker::ReadColumns(PlaneReader& in, uint32_t count) {
  constexpr size_t kKeys = Table<Sums>::kKeys;
  static_assert(kFields<Sums> <= kMostFields);
  absl::Status keys = ForEachField<0, kKeys>([&]<size_t kField>() {
    return in.Differences(count, ids_[kField]) ? absl::OkStatus() : Truncated();
  });
  if (!keys.ok()) return keys;
  return ForEachField<kKeys, kFields<Sums>>([&]<size_t kField>() {
    auto& values = ColumnOf<StoredOf<Sums, kField>>(kField);
    return in.Column(count, values) ? absl::OkStatus() : Truncated();
  });
}

template <typename Sums>
absl::Status Unpacker::ReadTable(PlaneReader& in, KeyReader& keys, const WantedSums& wanted,
                                 std::vector<Sums>& rows) {
  constexpr size_t kKeys = Table<Sums>::kKeys;
  uint32_t count = 0;
  if (!in.Number(count) || count > in.left() / kRowBytes<Sums>) return Truncated();
  if (!IsWanted<Sums>(wanted)) {
    rows.clear();
    return in.Skip(count * kRowBytes<Sums>) ? absl::OkStatus() : Truncated();
  }
  XENOSCOPE_RETURN_IF_ERROR(ReadColumns<Sums>(in, count));
  rows.resize(count);
  XENOSCOPE_RETURN_IF_ERROR((ForEachField<0, kKeys>(
      [&]<size_t kField>() { return SetKeys<Sums, kField>(ids_[kField], keys, rows); })));
  return ForEachField<kKeys, kFields<Sums>>([&]<size_t kField>() {
    const auto* const values = ColumnOf<StoredOf<Sums, kField>>(kField).data();
    for (uint32_t i = 0; i < count; ++i) {
      std::get<kField>(Table<Sums>::Fields(rows[i])) = values[i];
    }
    return absl::OkStatus();
  });
}

absl::Status Unpacker::Read(PlaneReader& in, KeyReader& keys, const WantedSums& wanted,
                            SliceSums& sums) {
  XENOSCOPE_RETURN_IF_ERROR(ForEachTable([&]<typename Sums>() {
    // Slices that were pushed before version 4 end before their last table.
    if (std::is_same_v<Sums, TraceSums> && in.left() == 0) {
      sums.trace.clear();
      return absl::OkStatus();
    }
    return ReadTable(in, keys, wanted, sums.*Table<Sums>::kRows);
  }));
  if (in.left() == 0) return absl::OkStatus();
  return InvalidError("the store is damaged: the sums of a slice have {} bytes too many",
                      in.left());
}

absl::Status Unpacker::Read(Bytes packed, KeyReader& keys, const WantedSums& wanted,
                            SliceSums& sums) {
  XENOSCOPE_RETURN_IF_ERROR(planes_.Open(packed));
  return Read(planes_, keys, wanted, sums);
}

}  // namespace xenoscope::store
