#include "store/store.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "store/clickhouse/clickhouse_store.h"
#include "store/clickhouse/server_url.h"
#include "store/sqlite/sqlite_store.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

constexpr std::string_view kSqliteScheme = "sqlite:";
constexpr uint64_t kMaxClockHz = 1'000'000'000'000;

// The longest time of so many slices together.
int64_t MostOf(uint64_t slices) {
  constexpr uint64_t kMostDays = std::numeric_limits<int64_t>::max() / kMaxSliceNs;
  return static_cast<int64_t>(std::min(slices, kMostDays)) * kMaxSliceNs;
}

bool IsTraced(ContextNumber context, const Dictionary& dictionary) {
  return context != kAllContexts && correlate::IsTraced(dictionary.contexts[context].kind);
}

// Whether the row's keys are those that such rows have.
bool HasKeys(const StratumSums& row, const Dictionary& dictionary) {
  return row.context != kAllContexts &&
         IsTraced(row.context, dictionary) == (row.vcpu != kAllVcpus);
}
bool HasKeys(const VcpuSums& row, const Dictionary& /*dictionary*/) {
  return row.vcpu != kAllVcpus;
}
bool HasKeys(const PairSums& row, const Dictionary& dictionary) {
  return row.vcpu != kAllVcpus && IsTraced(row.a, dictionary) && IsTraced(row.b, dictionary);
}
bool HasKeys(const PartSums& row, const Dictionary& /*dictionary*/) {
  return row.vcpu != kAllVcpus && row.context != kAllContexts;
}
bool HasKeys(const UnionSums& row, const Dictionary& /*dictionary*/) {
  return row.vcpu != kAllVcpus;
}
bool HasKeys(const CrossSums& row, const Dictionary& /*dictionary*/) {
  return row.vcpu != kAllVcpus && row.columns < kAllCodeColumns;
}
bool HasKeys(const Counter& row, const Dictionary& /*dictionary*/) { return row.value >= 0; }
bool HasKeys(const TraceSums& row, const Dictionary& /*dictionary*/) {
  return row.figure <= kLastTraceFigure &&
         (row.figure == kFindingFigure) == (row.vcpu == kAllVcpus) && row.count >= 0 &&
         row.cycles >= 0;
}

template <typename Sums>
bool IsFinite(const Sums& row) {
  const auto is_finite = [](const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>) {
      return std::isfinite(field);
    }
    return true;
  };
  return std::apply([&](const auto&... fields) { return (is_finite(fields) && ...); },
                    Table<Sums>::Fields(row));
}

}  // namespace

absl::Status CheckSlice(const Slice& slice, const Dictionary& dictionary) {
  const SliceHead& head = slice.head;
  if (head.host.empty() || head.event.empty() || slice.count == 0 || head.begin_ns >= head.end_ns ||
      head.begin_ns < 0 || slice.gaps_ns < 0 || slice.gaps_ns > head.end_ns - head.begin_ns ||
      head.end_ns - head.begin_ns - slice.gaps_ns > MostOf(slice.count)) {
    return InvalidError(
        "a slice of host '{}' and event '{}' is from {} to {} ns: it needs both names, and a time "
        "of "
        "a day at most",
        head.host, head.event, head.begin_ns, head.end_ns);
  }
  if (head.clock_hz == 0 || head.clock_hz > kMaxClockHz || !std::isfinite(head.period) ||
      head.period <= 0) {
    return InvalidError("a slice of {} has a clock of {} Hz and a period of {} cycles", head.host,
                        head.clock_hz, head.period);
  }
  return ForEachTable([&]<typename Sums>() -> absl::Status {
    for (const Sums& row : slice.sums.*Table<Sums>::kRows) {
      if (HasKeys(row, dictionary) && IsFinite(row)) continue;
      return InvalidError("a slice of {} has a damaged row in the table {}", head.host,
                          Table<Sums>::kName);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> Store::Push(const Slice& slice, const Dictionary& dictionary) {
  XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice, dictionary));
  return PushChecked(slice, dictionary);
}

absl::Status Store::PutFunctions(const std::string& build_id,
                                 const std::vector<ImageFunction>& functions) {
  XENOSCOPE_RETURN_IF_ERROR(CheckFunctions(build_id, functions));
  return PutChecked(build_id, functions);
}

absl::Status Store::Read(const Selection& selection, const SliceVisitor& visit) {
  return ReadAhead().Run(
      [&](const ReadAhead::Sink& sink) { return ReadUnchecked(selection, sink); },
      [&](const Slice& slice, const Dictionary& dictionary) {
        const absl::Status status = CheckSlice(slice, dictionary);
        return status.ok() ? visit(slice, dictionary) : status;
      });
}

absl::Status CheckStoreUrl(std::string_view url) {
  if (url.starts_with(kSqliteScheme) && url.size() > kSqliteScheme.size()) return absl::OkStatus();
  if (url.starts_with(kClickHouseScheme)) return ParseServerUrl(url).status();
  return InvalidError(
      "'{}' is not the URL of a store: give sqlite:FILE or clickhouse://HOST:PORT/DATABASE", url);
}

bool IsServerUrl(std::string_view url) { return url.starts_with(kClickHouseScheme); }

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& url, Access access) {
  XENOSCOPE_RETURN_IF_ERROR(CheckStoreUrl(url));
  if (url.starts_with(kSqliteScheme)) {
    return SqliteStore::Open(url.substr(kSqliteScheme.size()), access);
  }
  return ClickHouseStore::Open(url, access);
}

}  // namespace xenoscope::store
