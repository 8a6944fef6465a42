// Joins slices of a host to a longer one: the sums of their sums, which need less space, as most
// keys come again in each slice.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "store/slice.h"
#include "store/tables.h"

namespace xenoscope::store {

// What slices must have in common so that their sums, added up, are those of one slice.
struct JoinKey {
  std::string host;
  std::string event;
  uint64_t clock_hz = 0;
  bool is_time = true;
  bool traced = true;
  double period = 1;

  auto operator<=>(const JoinKey&) const = default;
};
[[nodiscard]] JoinKey JoinKeyOf(const SliceHead& head);

// Returns the fields of a row that are its key.
template <typename Sums>
auto KeyOfRow(const Sums& row) {
  return [&]<size_t... kField>(std::index_sequence<kField...> /*keys*/) {
    return std::tuple(std::get<kField>(Table<Sums>::Fields(row))...);
  }
  (std::make_index_sequence<Table<Sums>::kKeys>());
}

class SliceJoiner {
 public:
  SliceJoiner() { out_.count = 0; }

  // Adds a slice. All have one JoinKey, and keys of one dictionary. O(sums).
  void Add(const Slice& slice);
  // Returns the slice that has been joined, whose entries have different keys. There is one slice
  // at least.
  [[nodiscard]] Slice Take() { return std::move(out_); }

 private:
  template <typename Sums>
  using Numbers = absl::flat_hash_map<decltype(KeyOfRow(std::declval<const Sums&>())), size_t>;

  Slice out_;
  std::tuple<Numbers<StratumSums>, Numbers<VcpuSums>, Numbers<PairSums>, Numbers<PartSums>,
             Numbers<UnionSums>, Numbers<CrossSums>, Numbers<Counter>, Numbers<TraceSums>>
      numbers_;  // by key: the index of the row in out_
};

}  // namespace xenoscope::store
