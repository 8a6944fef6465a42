#include "store/join.h"

#include <algorithm>

namespace xenoscope::store {
namespace {

// Adds the sums of a row with the same key.
template <typename Sums>
void AddRow(const Sums& more, Sums& row) {
  const auto from = Table<Sums>::Fields(more);
  const auto to = Table<Sums>::Fields(row);
  constexpr size_t kKeys = Table<Sums>::kKeys;
  [&]<size_t... kField>(std::index_sequence<kField...> /*sums*/) {
    ((std::get<kKeys + kField>(to) += std::get<kKeys + kField>(from)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(from)> - kKeys>());
}

}  // namespace

JoinKey JoinKeyOf(const SliceHead& head) {
  return {head.host, head.event, head.clock_hz, head.is_time, head.traced, head.period};
}

void SliceJoiner::Add(const Slice& slice) {
  const int64_t sampled_ns = slice.head.end_ns - slice.head.begin_ns - slice.gaps_ns;
  SliceHead& head = out_.head;
  if (out_.count == 0) {
    head = slice.head;
    out_.gaps_ns = head.end_ns - head.begin_ns;
  } else {
    const int64_t before_ns = head.end_ns - head.begin_ns;
    head.begin_ns = std::min(head.begin_ns, slice.head.begin_ns);
    head.end_ns = std::max(head.end_ns, slice.head.end_ns);
    head.clock_error_ns = std::max(head.clock_error_ns, slice.head.clock_error_ns);
    out_.gaps_ns += head.end_ns - head.begin_ns - before_ns;
  }
  out_.gaps_ns -= sampled_ns;
  out_.count += slice.count;
  (void)ForEachTable([&]<typename Sums>() {
    auto& numbers = std::get<Numbers<Sums>>(numbers_);
    std::vector<Sums>& rows = out_.sums.*Table<Sums>::kRows;
    for (const Sums& more : slice.sums.*Table<Sums>::kRows) {
      const auto [number, is_new] = numbers.try_emplace(KeyOfRow(more), rows.size());
      if (is_new) {
        rows.push_back(more);
      } else {
        AddRow(more, rows[number->second]);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace xenoscope::store
