#include "store/clickhouse/slice_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/clickhouse/replacement.h"
#include "store/clickhouse/slice_source.h"
#include "store/clickhouse/sum_table.h"
#include "store/join.h"
#include "store/named_sums.h"

namespace xenoscope::store {
namespace {

// Slices that become one, in the order of time.
struct JoinGroup {
  std::vector<const StoredSlice*> slices;  // those that were pushed twice among them
  uint64_t different = 0;                  // without these
};
using JoinGroups = std::map<JoinKey, JoinGroup>;

JoinGroups GroupsOf(const StoredSlices& slices) {
  JoinGroups groups;
  for (const StoredSlice& each : slices.all()) {
    JoinGroup& group = groups[JoinKeyOf(each.head)];
    group.slices.push_back(&each);
    if (!each.again) ++group.different;
  }
  std::erase_if(groups, [](const auto& each) { return each.second.different < 2; });
  return groups;
}

// Joins the slices of an interval.
absl::Status JoinInterval(HttpClient& client, const Range& range, const StoredSlices& slices,
                          Store::Joined& joined) {
  XENOSCOPE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Of(client, range, slices));
  Dictionary dictionary;
  NamedReader reader(dictionary);
  for (const auto& [key, group] : GroupsOf(slices)) {
    SliceJoiner joiner;
    for (const StoredSlice* const each : group.slices) {
      if (each->again) continue;
      Slice slice{each->head, {}, each->count, each->gaps_ns};
      XENOSCOPE_RETURN_IF_ERROR(reader.Read(each->names, each->packed, {}, slice.sums));
      XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice, dictionary));
      joiner.Add(slice);
    }
    XENOSCOPE_RETURN_IF_ERROR(replacement.Add(group.slices, joiner.Take(), dictionary));
    joined.from += group.different;
    ++joined.to;
  }
  return replacement.Send();
}

// By the begin of each interval in which slices can be joined: what the hosts that have such ones
// need.
using Intervals = std::map<int64_t, std::vector<StoredSize>>;

absl::StatusOr<Intervals> IntervalsToJoin(HttpClient& client, const Selection& selection,
                                          int64_t interval_ns) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client.Run(fmt::format(
          "SELECT host, first_ns, sum(needs) FROM (SELECT host, intDiv(begin_ns, {0}) * {0} AS "
          "first_ns, sum(bytes) AS needs FROM {1} WHERE kind = 'slice' AND {2} GROUP BY host, "
          "first_ns, event, clock_hz, is_time, traced, period HAVING uniqExact(begin_ns) > 1) "
          "GROUP BY host, first_ns ORDER BY host, first_ns FORMAT RowBinary",
          interval_ns, kSumTable, Where({selection}))));
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<StoredSize> sizes, ParseSizes(answer, client));
  Intervals intervals;
  for (StoredSize& size : sizes) intervals[size.begin_ns].push_back(std::move(size));
  return intervals;
}

}  // namespace

absl::Status JoinSlices(HttpClient& client, const Selection& selection, int64_t interval_ns,
                        Store::Joined& joined) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Intervals intervals,
                             IntervalsToJoin(client, selection, interval_ns));
  for (const auto& [begin_ns, sizes] : intervals) {
    Selection of_interval = selection;
    of_interval.since_ns = std::max(begin_ns, selection.since_ns);
    of_interval.until_ns = std::min(begin_ns + interval_ns, selection.until_ns);
    XENOSCOPE_RETURN_IF_ERROR(ForEachPart(client, PlanReads(of_interval, sizes, interval_ns),
                                          [&](const Range& range, const StoredSlices& slices) {
                                            return JoinInterval(client, range, slices, joined);
                                          }));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::store
