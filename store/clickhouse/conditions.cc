#include "store/clickhouse/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "store/clickhouse/sum_columns.h"

namespace xenoscope::store {

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Where(const Selection& selection) {
  std::string where = fmt::format("begin_ns >= {} AND begin_ns < {}",
                                  std::max<int64_t>(selection.since_ns, 0), selection.until_ns);
  if (!selection.event.empty()) where += " AND event = " + Quoted(selection.event);
  if (!selection.hosts.empty()) {
    std::vector<std::string> hosts;
    for (const std::string& host : selection.hosts) hosts.push_back(Quoted(host));
    where += fmt::format(" AND host IN ({})", fmt::join(hosts, ", "));
  }
  return where;
}

namespace {

// A joined slice begins where its first piece does, and no interval is longer.
Selection OfJoined(Selection selection) {
  selection.since_ns = std::max<int64_t>(selection.since_ns, kMaxSliceNs) - kMaxSliceNs;
  return selection;
}

}  // namespace

std::string WherePieces(const Selection& selection) {
  return "kind = 'piece' AND " + Where(OfJoined(selection));
}

std::string WhereMarks(Selection selection) {
  selection.event.clear();
  return "event = '' AND kind = 'replaced' AND " + Where(OfJoined(std::move(selection)));
}

std::string Slices(const Selection& selection) {
  const std::vector<std::string> columns = absl::StrSplit(std::string(kSliceColumns), ", ");
  std::string any;
  for (const std::string& column : columns) any += fmt::format(", any({0}) AS {0}", column);
  // A slice and the mark that replaces it have one number. Only rows of slices alone are left.
  return fmt::format(
      "(SELECT number AS push, any(slices) AS slices{} FROM (SELECT if(kind = 'slice', "
      "push, replaced) AS number, kind, slices, {} FROM {} WHERE (kind = 'slice' AND {}) OR ({})) "
      "GROUP BY number HAVING countIf(kind = 'replaced') = 0)",
      any, kSliceColumns, kSumTable, Where(selection), WhereMarks(selection));
}

std::string SelectOnce(const Selection& selection) {
  return fmt::format("SELECT min(push) FROM {} GROUP BY event, host, begin_ns", Slices(selection));
}

std::string WhereOnce(const Selection& selection) {
  return fmt::format("{} AND push GLOBAL IN ({})", Where(selection), SelectOnce(selection));
}

}  // namespace xenoscope::store
