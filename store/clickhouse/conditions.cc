#include "store/clickhouse/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace xenoscope::store {
namespace {

// A joined slice begins where its first piece does, and no interval is longer.
Range OfJoined(Range range) {
  int64_t& since_ns = range.selection.since_ns;
  since_ns = std::max<int64_t>(since_ns, kMaxSliceNs) - kMaxSliceNs;
  return range;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Where(const Range& range) {
  const Selection& selection = range.selection;
  std::string where = fmt::format("begin_ns >= {} AND begin_ns < {}",
                                  std::max<int64_t>(selection.since_ns, 0), selection.until_ns);
  if (!selection.event.empty()) where += " AND event = " + Quoted(selection.event);
  if (!selection.hosts.empty()) {
    std::vector<std::string> hosts;
    for (const std::string& host : selection.hosts) hosts.push_back(Quoted(host));
    where += fmt::format(" AND host IN ({})", fmt::join(hosts, ", "));
  }
  if (!range.first_host.empty()) where += " AND host >= " + Quoted(range.first_host);
  if (!range.last_host.empty()) where += " AND host <= " + Quoted(range.last_host);
  return where;
}

std::string WherePieces(const Range& range) {
  return "kind = 'piece' AND " + Where(OfJoined(range));
}

std::string WhereMarks(Range range) {
  range.selection.event.clear();
  return "event = '' AND kind = 'replaced' AND " + Where(OfJoined(std::move(range)));
}

}  // namespace xenoscope::store
