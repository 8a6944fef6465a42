#include "store/clickhouse/group_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "base/error.h"
#include "store/bounded_text.h"
#include "store/clickhouse/sum_columns.h"

namespace xenoscope::store {
namespace {

constexpr std::string_view kGroup = "event, host, is_time, clock_hz, period, traced";

GroupKey ReadGroup(RowBinaryReader& in) {
  GroupKey key;
  key.event = BoundedName(in.Text());
  key.host = BoundedName(in.Text());
  key.is_time = in.Get<uint8_t>() != 0;
  key.clock_hz = in.Get<uint64_t>();
  key.period = in.Get<double>();
  key.traced = in.Get<uint8_t>() != 0;
  return key;
}

template <typename Sums>
bool IsWanted(const WantedSums& wanted) {
  if (std::is_same_v<Sums, Counter>) return true;
  if (std::is_same_v<Sums, TraceSums>) return wanted.trace;
  const bool of_unions = std::is_same_v<Sums, UnionSums> || std::is_same_v<Sums, PairSums>;
  return wanted.profile && (wanted.unions || !of_unions);
}

}  // namespace

absl::StatusOr<GroupReader> GroupReader::Ask(std::string_view where, const WantedSums& wanted,
                                             Crosses which, const Run& run) {
  std::vector<std::string> answers;
  const std::string from_to =
      fmt::format("FROM {} WHERE {} AND kind = {{}} GROUP BY {}{{}} ORDER BY {} FORMAT RowBinary",
                  kSumTable, where, kGroup, kGroup);
  XENOSCOPE_ASSIGN_OR_RETURN(
      answers.emplace_back(),
      run(fmt::format("SELECT {}, sum(slices), min(begin_ns), max(end_ns), sum(end_ns - begin_ns - "
                      "gaps_ns), max(clock_error_ns) {}",
                      kGroup, fmt::format(fmt::runtime(from_to), "'slice'", ""))));
  XENOSCOPE_RETURN_IF_ERROR(ForEachTable([&]<typename Sums>() -> absl::Status {
    if (!IsWanted<Sums>(wanted)) {
      answers.emplace_back();
      return absl::OkStatus();
    }
    // Crosses are of one set of columns each.
    const bool crosses = std::is_same_v<Sums, CrossSums>;
    const uint8_t code = crosses ? kAllCodeColumns : wanted.columns;
    std::string kind = fmt::format("'{}'", Table<Sums>::kName);
    if (crosses && which == Crosses::kOfColumns) {
      std::set<uint8_t> sets(wanted.crosses.begin(), wanted.crosses.end());
      sets.insert({0, wanted.columns});
      kind += fmt::format(" AND columns IN ({})", fmt::join(sets, ", "));
    }
    XENOSCOPE_ASSIGN_OR_RETURN(
        answers.emplace_back(),
        run(fmt::format("SELECT {}, {}, {} {}", kGroup, KeyColumns<Sums>(code, Clause::kSelect),
                        SumsOfColumns<Sums>(),
                        fmt::format(fmt::runtime(from_to), kind,
                                    ", " + KeyColumns<Sums>(code, Clause::kGroupBy)))));
    return absl::OkStatus();
  }));
  return GroupReader(std::move(answers));
}

GroupReader::GroupReader(std::vector<std::string> answers) : answers_(std::move(answers)) {
  for (const std::string& answer : answers_) rows_.emplace_back(answer);
}

bool GroupReader::Next(Dictionary& dictionary, Slice& slice) {
  RowBinaryReader& heads = rows_.front().in;
  if (!ok_) return false;
  if (heads.AtEnd()) {
    // Rows of groups that have no head.
    ok_ = std::ranges::all_of(rows_,
                              [](const Rows& rows) { return rows.in.AtEnd() && !rows.has_next; });
    return false;
  }
  const GroupKey group = ReadGroup(heads);
  slice.count = heads.Get<uint64_t>();
  const auto begin_ns = heads.Get<int64_t>();
  const auto end_ns = heads.Get<int64_t>();
  // Without signs: a bad answer may overflow.
  slice.gaps_ns = static_cast<int64_t>(static_cast<uint64_t>(end_ns) -
                                       static_cast<uint64_t>(begin_ns) - heads.Get<uint64_t>());
  const auto clock_error_ns = heads.Get<uint64_t>();
  slice.head = {.host = group.host,
                .begin_ns = begin_ns,
                .end_ns = end_ns,
                .clock_error_ns = clock_error_ns,
                .clock_hz = group.clock_hz,
                .event = group.event,
                .is_time = group.is_time,
                .traced = group.traced,
                .period = group.period};
  ok_ = heads.ok();
  size_t kind = 0;
  (void)ForEachTable([&]<typename Sums>() {
    Rows& rows = rows_.at(++kind);
    auto& sums = slice.sums.*Table<Sums>::kRows;
    sums.clear();
    while (ok_) {
      if (!rows.has_next && !rows.in.AtEnd()) {
        rows.next = ReadGroup(rows.in);
        rows.has_next = true;
      }
      if (!rows.has_next || rows.next != group) break;
      ReadSums(rows.in, dictionary, sums.emplace_back());
      rows.has_next = false;
      ok_ = rows.in.ok();
    }
    return absl::OkStatus();
  });
  return ok_;
}

}  // namespace xenoscope::store
