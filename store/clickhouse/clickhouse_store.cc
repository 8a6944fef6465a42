#include "store/clickhouse/clickhouse_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <thread>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "base/error.h"
#include "store/bounded_text.h"
#include "store/clickhouse/conditions.h"
#include "store/clickhouse/slice_join.h"
#include "store/clickhouse/sum_columns.h"
#include "store/known_slice.h"

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
  if (access == Access::kRead) {
    return NotFoundError("{}: the database has no store yet: push a recording to it",
                         client_.url().Text());
  }
  return client_.Run(CreateSumTable()).status();
}

absl::StatusOr<std::vector<SliceHead>> ClickHouseStore::Heads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(fmt::format(
          "SELECT event, host, begin_ns, argMin(end_ns, push), argMin(clock_error_ns, push), "
          "argMin(clock_hz, push), argMin(is_time, push), argMin(traced, push), argMin(period, "
          "push) FROM {} GROUP BY event, host, begin_ns ORDER BY begin_ns FORMAT RowBinary",
          Slices(selection))));
  RowBinaryReader in(AsBytes(answer));
  std::vector<SliceHead> heads;
  while (in.ok() && !in.AtEnd()) heads.push_back(ReadHead(in));
  if (!in.ok()) return DamagedAnswer(client_);
  return heads;
}

absl::StatusOr<std::vector<SliceHead>> ClickHouseStore::PushedHeads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(fmt::format("SELECT host, if(kind = 'piece', piece_begin_ns, begin_ns), if(kind "
                              "= 'piece', piece_end_ns, end_ns) FROM {} WHERE (kind = 'slice' AND "
                              "slices = 1 AND {}) OR ({} AND piece_end_ns > {} AND piece_begin_ns "
                              "< {}) FORMAT RowBinary",
                              kSumTable, Where(selection), WherePieces(selection),
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
  AppendSlice(slice, dictionary, absl::Uniform<uint64_t>(absl::BitGen()), rows);
  XENOSCOPE_RETURN_IF_ERROR(client_.Run(InsertSums(), rows.bytes()).status());
  return true;
}

absl::Status ClickHouseStore::ReadUnchecked(const Selection& selection, const SliceVisitor& visit) {
  constexpr int kMostAttempts = 5;
  std::optional<GroupReader> groups;
  for (int attempt = 0; !groups && attempt < kMostAttempts; ++attempt) {
    XENOSCOPE_ASSIGN_OR_RETURN(groups, AskOnce(selection));
  }
  if (!groups) {
    return absl::AbortedError(
        "other processes join or remove these slices; ask again when they have ended");
  }
  Dictionary dictionary;
  Slice slice;
  while (groups->Next(dictionary, slice)) XENOSCOPE_RETURN_IF_ERROR(visit(slice, dictionary));
  return groups->ok() ? absl::OkStatus() : DamagedAnswer(client_);
}

absl::StatusOr<std::optional<GroupReader>> ClickHouseStore::AskOnce(const Selection& selection) {
  // Slices are chosen once, so that all statements see the same ones, and the server need not
  // choose them again for each.
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<uint64_t> pushes, Numbers(SelectOnce(selection)));
  if (pushes.empty()) {
    return GroupReader(std::vector<std::string>(GroupReader::kAnswers));
  }
  const bool named = pushes.size() <= kMostNamedPushes;
  const std::string where =
      named ? fmt::format("{} AND push IN ({})", Where(selection), fmt::join(pushes, ", "))
            : WhereOnce(selection);
  XENOSCOPE_ASSIGN_OR_RETURN(
      GroupReader groups,
      GroupReader::Ask(where, selection.wanted, GroupReader::Crosses::kOfColumns,
                       [this](std::string_view sql) { return client_.Run(sql); }));
  if (!named) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<uint64_t> after, Numbers(SelectOnce(selection)));
    // Slices that came meanwhile are no reason to ask again: in a fleet some always come.
    if (!std::ranges::includes(after, pushes)) return std::nullopt;
    return groups;
  }
  // The rows of a slice are removed together: where its head is still there they all were.
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t left,
                             Count(fmt::format("SELECT uniqExact(push) FROM {} WHERE kind = "
                                               "'slice' AND {}",
                                               kSumTable, where)));
  if (left != pushes.size()) return std::nullopt;
  return groups;
}

absl::StatusOr<std::vector<uint64_t>> ClickHouseStore::Numbers(const std::string& sql) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string answer, client_.Run(sql + " FORMAT RowBinary"));
  RowBinaryReader in(AsBytes(answer));
  std::set<uint64_t> numbers;
  while (in.ok() && !in.AtEnd()) numbers.insert(in.Get<uint64_t>());
  if (!in.ok()) return DamagedAnswer(client_);
  return std::vector<uint64_t>(numbers.begin(), numbers.end());
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
  XENOSCOPE_RETURN_IF_ERROR(Mutate("DELETE WHERE " + Where(selection)));
  return heads.size();
}

absl::StatusOr<Store::Joined> ClickHouseStore::Join(const Selection& selection,
                                                    int64_t interval_ns) {
  XENOSCOPE_RETURN_IF_ERROR(RequireOwnTable());
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(fmt::format("SELECT intDiv(begin_ns, {0}) * {0} AS first_ns FROM {1} WHERE kind "
                              "= 'slice' AND {2} GROUP BY first_ns ORDER BY first_ns FORMAT "
                              "RowBinary",
                              interval_ns, kSumTable, Where(selection))));
  RowBinaryReader intervals(AsBytes(answer));
  Joined joined;
  while (intervals.ok() && !intervals.AtEnd()) {
    const auto begin_ns = intervals.Get<int64_t>();
    Selection of_interval = selection;
    of_interval.since_ns = std::max(begin_ns, selection.since_ns);
    of_interval.until_ns = std::min(begin_ns + interval_ns, selection.until_ns);
    XENOSCOPE_RETURN_IF_ERROR(SliceJoin(client_, of_interval).Run(joined));
  }
  if (!intervals.ok()) return DamagedAnswer(client_);
  XENOSCOPE_RETURN_IF_ERROR(RemoveReplaced(selection));
  return joined;
}

absl::Status ClickHouseStore::RemoveReplaced(const Selection& selection) {
  // The server runs this in no database of its own.
  const std::string table = fmt::format("{}.{}", client_.url().database, kSumTable);
  const std::string marks = WhereMarks(selection);
  const std::string replaced = fmt::format("{} AND push IN (SELECT replaced FROM {} WHERE {})",
                                           Where(selection), table, marks);
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
                  table, Where(longer));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const uint64_t done_marks,
      Count(fmt::format("SELECT count() FROM {} WHERE {}", kSumTable, done)));
  return done_marks == 0 ? absl::OkStatus() : Mutate("DELETE WHERE " + done);
}

absl::StatusOr<uint64_t> ClickHouseStore::EraseDomain(const Selection& selection,
                                                      const std::string& domain) {
  const std::string name = Quoted(domain);
  const std::string of_domain =
      fmt::format("{} AND (domain = {} OR other = {})", Where(selection), name, name);
  XENOSCOPE_ASSIGN_OR_RETURN(
      const uint64_t slices,
      Count(fmt::format("SELECT uniqExact(event, host, begin_ns) FROM {} WHERE {}", kSumTable,
                        of_domain)));
  if (slices == 0) {
    return NotFoundError("{}: no slice of these hosts and times has the domain '{}'",
                         client_.url().Text(), domain);
  }
  // One number for one name; who knows the names cannot compute the numbers without this one.
  const auto salt = absl::Uniform<uint64_t>(absl::BitGen());
  const auto erased = [&](std::string_view column) {
    return fmt::format("concat('(removed ', toString(sipHash64({}, {})), ')')", column, salt);
  };
  // Its images and functions are in its own rows, its name is also in those of who waited for it.
  const auto of_code = [&](std::string_view column) {
    return fmt::format("{0} = if(domain != {1} OR mode = 'xen' OR {0} = '', {0}, {2})", column,
                       name, erased(column));
  };
  const auto of_name = [&](std::string_view column) {
    return fmt::format("{0} = if({0} = {1}, {2}, {0})", column, name, erased(column));
  };
  XENOSCOPE_RETURN_IF_ERROR(
      Mutate(fmt::format("UPDATE {}, {}, {}, {} WHERE {}", of_name("domain"), of_name("other"),
                         of_code("image"), of_code("function"), of_domain)));
  return slices;
}

}  // namespace xenoscope::store
