#include "store/clickhouse/stored_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "store/bounded_text.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/sum_table.h"

namespace xenoscope::store {
namespace {

StoredSlice ReadStored(RowBinaryReader& in) {
  StoredSlice stored;
  SliceHead& head = stored.head;
  head.event = BoundedName(in.Text());
  head.host = BoundedName(in.Text());
  head.begin_ns = in.Get<int64_t>();
  head.end_ns = in.Get<int64_t>();
  head.clock_error_ns = in.Get<uint64_t>();
  head.clock_hz = in.Get<uint64_t>();
  head.is_time = in.Get<uint8_t>() != 0;
  head.traced = in.Get<uint8_t>() != 0;
  head.period = in.Get<double>();
  stored.push = in.Get<uint64_t>();
  stored.count = in.Get<uint64_t>();
  stored.gaps_ns = in.Get<int64_t>();
  stored.names = AsText(in.Blob());
  stored.packed = in.Blob();
  return stored;
}

// What a slice is of: two of one host, begin and event are one.
auto IdentityOf(const StoredSlice& slice) {
  return std::tie(slice.head.host, slice.head.begin_ns, slice.head.event);
}

}  // namespace

std::string SelectSlices(const Range& range, SliceColumns columns) {
  return fmt::format(
      "SELECT replaced, event, host, begin_ns, end_ns, clock_error_ns, clock_hz, is_time, traced, "
      "period, push, slices, gaps_ns, {} FROM {} WHERE (kind = 'slice' AND {}) OR ({}) FORMAT "
      "RowBinary",
      columns == SliceColumns::kAll ? "names, packed" : "'', ''", kSumTable, Where(range),
      WhereMarks(range));
}

std::optional<StoredSlices> StoredSlices::Parse(std::string answer) {
  StoredSlices slices(std::move(answer));
  std::vector<StoredSlice>& all = slices.all_;
  RowBinaryReader in(AsBytes(*slices.answer_));
  absl::flat_hash_set<uint64_t> replaced;
  while (in.ok() && !in.AtEnd()) {
    const auto mark = in.Get<uint64_t>();
    StoredSlice stored = ReadStored(in);
    if (mark == 0) {
      all.push_back(std::move(stored));
    } else {
      replaced.insert(mark);
    }
  }
  if (!in.ok()) return std::nullopt;
  std::erase_if(all, [&](const StoredSlice& each) { return replaced.contains(each.push); });
  std::ranges::sort(all, [](const StoredSlice& a, const StoredSlice& b) {
    return std::tuple_cat(IdentityOf(a), std::tie(a.push)) <
           std::tuple_cat(IdentityOf(b), std::tie(b.push));
  });
  for (size_t i = 1; i < all.size(); ++i)
    all[i].again = IdentityOf(all[i]) == IdentityOf(all[i - 1]);
  return slices;
}

}  // namespace xenoscope::store
