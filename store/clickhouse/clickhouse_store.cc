#include "store/clickhouse/clickhouse_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "base/error.h"
#include "store/bounded_text.h"
#include "store/clickhouse/conditions.h"
#include "store/clickhouse/domain_removal.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/slice_join.h"
#include "store/clickhouse/slice_source.h"
#include "store/clickhouse/stored_slices.h"
#include "store/clickhouse/sum_table.h"
#include "store/known_slice.h"
#include "store/named_sums.h"

namespace xenoscope::store {
namespace {

// Functions of files. Its name ends with the version of its columns.
constexpr std::string_view kFunctionTable = "functions_1";

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> ClickHouseStore::Open(std::string_view url, Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(ServerUrl server, ParseServerUrl(url));
  XENOSCOPE_ASSIGN_OR_RETURN(HttpClient client, HttpClient::Open(std::move(server)));
  std::unique_ptr<ClickHouseStore> store(new ClickHouseStore(std::move(client)));
  XENOSCOPE_RETURN_IF_ERROR(store->Prepare(access));
  return store;
}

absl::StatusOr<uint64_t> ClickHouseStore::Count(const std::string& sql) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string answer, client_.Run(sql + " FORMAT RowBinary"));
  RowBinaryReader in(AsBytes(answer));
  const auto count = in.Get<uint64_t>();
  if (!in.ok() || !in.AtEnd()) return DamagedAnswer(client_);
  return count;
}

absl::StatusOr<uint64_t> ClickHouseStore::Tables(const std::string& condition) {
  return Count(fmt::format("SELECT count() FROM system.tables WHERE database = '{}' AND name {}",
                           client_.url().database, condition));
}

absl::Status ClickHouseStore::Prepare(Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t found, Tables(fmt::format("= '{}'", kSumTable)));
  if (found > 0) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t others, Tables("LIKE 'sums\\_%'"));
  if (others > 0) {
    return PreconditionError(
        "{}: the database has a store of another version, and no table {}; use the xenoscope that "
        "filled it, or another database",
        client_.url().Text(), kSumTable);
  }
  if (access != Access::kCreate) {
    return NotFoundError("{}: the database has no store yet: push a recording to it",
                         client_.url().Text());
  }
  return client_.Run(CreateSumTable()).status();
}

absl::StatusOr<std::vector<SliceHead>> ClickHouseStore::Heads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::string answer,
                             client_.Run(SelectSlices({selection}, SliceColumns::kHeads)));
  const std::optional<StoredSlices> slices = StoredSlices::Parse(std::move(answer));
  if (!slices) return DamagedAnswer(client_);
  std::vector<SliceHead> heads;
  for (const StoredSlice& each : slices->all()) {
    if (!each.again) heads.push_back(each.head);
  }
  std::ranges::stable_sort(heads, {}, &SliceHead::begin_ns);
  return heads;
}

absl::StatusOr<std::vector<SliceHead>> ClickHouseStore::PushedHeads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(fmt::format("SELECT host, if(kind = 'piece', piece_begin_ns, begin_ns), if(kind "
                              "= 'piece', piece_end_ns, end_ns) FROM {} WHERE (kind = 'slice' AND "
                              "slices = 1 AND {}) OR ({} AND piece_end_ns > {} AND piece_begin_ns "
                              "< {}) FORMAT RowBinary",
                              kSumTable, Where({selection}), WherePieces({selection}),
                              std::max<int64_t>(selection.since_ns, 0), selection.until_ns)));
  RowBinaryReader in(AsBytes(answer));
  std::vector<SliceHead> heads;
  while (in.ok() && !in.AtEnd()) {
    SliceHead& head = heads.emplace_back();
    head.host = BoundedName(in.Text());
    head.begin_ns = in.Get<int64_t>();
    head.end_ns = in.Get<int64_t>();
  }
  if (!in.ok()) return DamagedAnswer(client_);
  return heads;
}

absl::StatusOr<bool> ClickHouseStore::PushChecked(const Slice& slice,
                                                  const Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<SliceHead> near, PushedHeads(Near(slice.head)));
  XENOSCOPE_ASSIGN_OR_RETURN(const bool known, IsKnown(slice.head, near));
  if (known) return false;
  RowBinaryWriter rows;
  XENOSCOPE_RETURN_IF_ERROR(
      AppendSlice(slice, dictionary, absl::Uniform<uint64_t>(absl::BitGen()), rows));
  XENOSCOPE_RETURN_IF_ERROR(client_.Run(InsertSums(), rows.bytes()).status());
  return true;
}

absl::Status ClickHouseStore::ReadUnchecked(const Selection& selection,
                                            const ReadAhead::Sink& sink) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredSize> sizes, DailySizes(client_, selection));
  Dictionary dictionary;
  NamedReader reader(dictionary);
  Slice slice;
  const auto read = [&](const Range& /*range*/, const StoredSlices& slices) {
    for (const StoredSlice& stored : slices.all()) {
      if (stored.again) continue;
      slice.head = stored.head;
      slice.count = stored.count;
      slice.gaps_ns = stored.gaps_ns;
      XENOSCOPE_RETURN_IF_ERROR(
          reader.Read(stored.names, stored.packed, selection.wanted, slice.sums));
      XENOSCOPE_RETURN_IF_ERROR(sink(slice, dictionary));
    }
    return absl::OkStatus();
  };
  return ForEachPart(client_, PlanReads(selection, sizes, kMaxSliceNs), read);
}

absl::Status ClickHouseStore::PutChecked(const std::string& build_id,
                                         const std::vector<ImageFunction>& functions) {
  XENOSCOPE_RETURN_IF_ERROR(
      client_
          .Run(fmt::format("CREATE TABLE IF NOT EXISTS {} (build_id String, pushed_ns Int64, begin "
                           "UInt64, end UInt64, name String) ENGINE = MergeTree ORDER BY "
                           "(build_id, pushed_ns, begin)",
                           kFunctionTable))
          .status());
  if (functions.empty()) return absl::OkStatus();
  const int64_t now = absl::GetCurrentTimeNanos();
  RowBinaryWriter rows;
  for (const ImageFunction& function : functions) {
    rows.Put(build_id);
    rows.Put(now);
    rows.Put(function.begin);
    rows.Put(function.end);
    rows.Put(function.name);
  }
  return client_
      .Run(fmt::format("INSERT INTO {} (build_id, pushed_ns, begin, end, name) FORMAT RowBinary",
                       kFunctionTable),
           rows.bytes())
      .status();
}

absl::StatusOr<std::vector<ImageFunction>> ClickHouseStore::Functions(const std::string& build_id) {
  std::vector<ImageFunction> functions;
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t tables, Tables(fmt::format("= '{}'", kFunctionTable)));
  if (tables == 0) return functions;
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(fmt::format("SELECT begin, end, name FROM {0} WHERE build_id = {1} AND pushed_ns "
                              "GLOBAL IN (SELECT max(pushed_ns) FROM {0} WHERE build_id = {1}) "
                              "ORDER BY begin LIMIT {2} FORMAT RowBinary",
                              kFunctionTable, Quoted(build_id), kMaxImageFunctions + 1)));
  RowBinaryReader in(AsBytes(answer));
  while (in.ok() && !in.AtEnd()) {
    ImageFunction& function = functions.emplace_back();
    function.begin = in.Get<uint64_t>();
    function.end = in.Get<uint64_t>();
    function.name = in.Text();
  }
  if (!in.ok()) return DamagedAnswer(client_);
  return functions;
}

absl::Status ClickHouseStore::RequireOwnTable() {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const uint64_t others,
      Tables(fmt::format("= '{}' AND engine NOT LIKE '%MergeTree'", kSumTable)));
  if (others == 0) return absl::OkStatus();
  return PreconditionError(
      "{}: the table {} stands for others (Distributed, Buffer): prune each shard, by the database "
      "of its own table",
      client_.url().Text(), kSumTable);
}

absl::Status ClickHouseStore::Mutate(const std::string& change) {
  constexpr auto kPoll = std::chrono::milliseconds(100);
  XENOSCOPE_RETURN_IF_ERROR(RequireOwnTable());
  XENOSCOPE_RETURN_IF_ERROR(
      client_.Run(fmt::format("ALTER TABLE {} {}", kSumTable, change)).status());
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        const uint64_t running,
        Count(fmt::format("SELECT count() FROM system.mutations WHERE database = '{}' AND table = "
                          "'{}' AND NOT is_done",
                          client_.url().database, kSumTable)));
    if (running == 0) return absl::OkStatus();
    std::this_thread::sleep_for(kPoll);
  }
}

absl::StatusOr<uint64_t> ClickHouseStore::Remove(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<SliceHead> heads, Heads(selection));
  if (heads.empty()) return 0;
  XENOSCOPE_RETURN_IF_ERROR(Mutate("DELETE WHERE " + Where({selection})));
  return heads.size();
}

absl::StatusOr<Store::Joined> ClickHouseStore::Join(const Selection& selection,
                                                    int64_t interval_ns) {
  XENOSCOPE_RETURN_IF_ERROR(RequireOwnTable());
  // Those that a process has left that did not come to its end.
  XENOSCOPE_RETURN_IF_ERROR(RemoveReplaced(selection));
  Joined joined;
  XENOSCOPE_RETURN_IF_ERROR(JoinSlices(client_, selection, interval_ns, joined));
  XENOSCOPE_RETURN_IF_ERROR(RemoveReplaced(selection));
  return joined;
}

absl::Status ClickHouseStore::RemoveReplaced(const Selection& selection) {
  // The server runs this in no database of its own.
  const std::string table = fmt::format("{}.{}", client_.url().database, kSumTable);
  const std::string marks = WhereMarks({selection});
  const std::string replaced = fmt::format("{} AND push IN (SELECT replaced FROM {} WHERE {})",
                                           Where({selection}), table, marks);
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t slices,
                             Count(fmt::format("SELECT count() FROM {} WHERE kind = 'slice' AND {}",
                                               kSumTable, replaced)));
  if (slices > 0) XENOSCOPE_RETURN_IF_ERROR(Mutate("DELETE WHERE " + replaced));
  // Then the marks. Pieces that begin after the selection's end keep theirs.
  Selection longer = selection;
  longer.event.clear();
  longer.until_ns = std::min(longer.until_ns, std::numeric_limits<int64_t>::max() - kMaxSliceNs);
  longer.until_ns += kMaxSliceNs;
  longer.since_ns = std::max<int64_t>(longer.since_ns, kMaxSliceNs) - kMaxSliceNs;
  const std::string done =
      fmt::format("{} AND replaced NOT IN (SELECT push FROM {} WHERE kind = 'slice' AND {})", marks,
                  table, Where({longer}));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const uint64_t done_marks,
      Count(fmt::format("SELECT count() FROM {} WHERE {}", kSumTable, done)));
  return done_marks == 0 ? absl::OkStatus() : Mutate("DELETE WHERE " + done);
}

absl::StatusOr<uint64_t> ClickHouseStore::EraseDomain(const Selection& selection,
                                                      const std::string& domain) {
  XENOSCOPE_RETURN_IF_ERROR(RequireOwnTable());
  XENOSCOPE_RETURN_IF_ERROR(RemoveReplaced(selection));
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t erased, EraseDomainNames(client_, selection, domain));
  if (erased == 0) {
    return NotFoundError("{}: no slice of these hosts and times has the domain '{}'",
                         client_.url().Text(), domain);
  }
  XENOSCOPE_RETURN_IF_ERROR(RemoveReplaced(selection));
  return erased;
}

}  // namespace xenoscope::store
