#include "store/clickhouse/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

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

std::string WhereNotReplaced(const Selection& selection) {
  return fmt::format("{} AND push GLOBAL NOT IN (SELECT replaced FROM {} WHERE {})",
                     Where(selection), kSumTable, WhereMarks(selection));
}

std::string SelectOnce(const Selection& selection) {
  return fmt::format(
      "SELECT min(push) FROM {} WHERE kind = 'slice' AND {} GROUP BY event, host, begin_ns",
      kSumTable, WhereNotReplaced(selection));
}

std::string WhereOnce(const Selection& selection) {
  return fmt::format("{} AND push GLOBAL IN ({})", Where(selection), SelectOnce(selection));
}

}  // namespace xenoscope::store
