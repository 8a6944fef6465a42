#include "store/sqlite/sqlite_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/error.h"
#include "store/bounded_text.h"
#include "store/join.h"
#include "store/known_slice.h"
#include "store/sqlite/removal.h"
#include "store/sqlite/sqlite_sums.h"

namespace xenoscope::store {
namespace {

// The version of the schema, in the file's user_version. Slices of version 4 have no hypercalls;
// those of version 3 have no TraceSums, and such a file has no functions. Both are read, and become
// version 5 when they are written.
constexpr int64_t kVersion = 5;
constexpr int64_t kVersionOfFunctions = 4;
constexpr int64_t kOldestVersion = 3;
constexpr int64_t kApplicationId = 0x58656e6f;  // "Xeno", in the file's header

// A question reads the heads of its slices, by an index over hosts or over times, and then the sums
// of these slices alone: Pack, one value a slice.
constexpr char kTables[] = R"sql(
CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE vcpu(id INTEGER PRIMARY KEY, domain INTEGER NOT NULL, number INTEGER NOT NULL,
  UNIQUE(domain, number));
CREATE TABLE context(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, exit INTEGER NOT NULL,
  has_both_modes INTEGER NOT NULL, UNIQUE(kind, exit, has_both_modes));
CREATE TABLE code(id INTEGER PRIMARY KEY, mode INTEGER NOT NULL, image INTEGER NOT NULL,
  function INTEGER NOT NULL, UNIQUE(mode, image, function));
CREATE TABLE slice(id INTEGER PRIMARY KEY, host INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, clock_error_ns INTEGER NOT NULL, clock_hz INTEGER NOT NULL,
  event INTEGER NOT NULL, is_time INTEGER NOT NULL, traced INTEGER NOT NULL, period REAL NOT NULL,
  count INTEGER NOT NULL, gaps_ns INTEGER NOT NULL,
  UNIQUE(host, begin_ns, event));
CREATE INDEX slice_by_time ON slice(begin_ns);
CREATE TABLE sums(slice INTEGER PRIMARY KEY, packed BLOB NOT NULL);
-- The slices that a joined one is of, as they were pushed.
CREATE TABLE piece(slice INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  PRIMARY KEY(slice, begin_ns)) WITHOUT ROWID;
)sql";

// What version 4 has and version 3 has not: the functions of files, for slices whose recordings did
// not have them.
constexpr char kTablesOfVersion4[] = R"sql(
CREATE TABLE function(build_id TEXT NOT NULL, begin INTEGER NOT NULL, end INTEGER NOT NULL,
  name TEXT NOT NULL, PRIMARY KEY(build_id, begin)) WITHOUT ROWID;
)sql";

absl::Status MakeTables(const Connection& connection) {
  return connection.Run(fmt::format("{}{}PRAGMA application_id = {}; PRAGMA user_version = {};",
                                    kTables, kTablesOfVersion4, kApplicationId, kVersion)
                            .c_str());
}

// Makes the tables in an empty file, checks the version of others, and makes it the newest one.
absl::Status Prepare(const Connection& connection, const std::string& path, Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t application, connection.Number("PRAGMA application_id"));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t tables,
                             connection.Number("SELECT count(*) FROM sqlite_master"));
  if (application == 0 && tables == 0 && access == Access::kCreate) return MakeTables(connection);
  if (application != kApplicationId) {
    return InvalidError("{}: a database of another program, not a store of xenoscope push", path);
  }
  if (version < kOldestVersion || version > kVersion) {
    return PreconditionError(
        "{}: a store of version {}; this xenoscope reads versions {} to {}: use the version of "
        "xenoscope that wrote it, or push its recordings to a new file",
        path, version, kOldestVersion, kVersion);
  }
  if (version == kVersion || access == Access::kRead) return absl::OkStatus();
  return connection.Run(fmt::format("{}PRAGMA user_version = {}",
                                    version < kVersionOfFunctions ? kTablesOfVersion4 : "",
                                    kVersion)
                            .c_str());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> SqliteStore::Open(const std::string& path, Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(Connection connection, Connection::Open(path, access));
  if (access != Access::kRead) {
    // In a transaction, so that only one of several processes makes the tables.
    XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
    XENOSCOPE_RETURN_IF_ERROR(Prepare(connection, path, access));
    XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  } else {
    XENOSCOPE_RETURN_IF_ERROR(Prepare(connection, path, access));
  }
  return std::unique_ptr<Store>(new SqliteStore(std::move(connection)));
}

absl::StatusOr<bool> SqliteStore::PushChecked(const Slice& slice, const Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<SliceHead> near, PushedHeads(Near(slice.head)));
  XENOSCOPE_ASSIGN_OR_RETURN(const bool known, IsKnown(slice.head, near));
  if (known) return false;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyWriter keys, SqliteKeyWriter::Make(connection_, dictionary));
  XENOSCOPE_RETURN_IF_ERROR(Insert(slice, keys).status());
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  return true;
}

absl::StatusOr<int64_t> SqliteStore::Insert(const Slice& slice, KeyWriter& keys) const {
  const SliceHead& head = slice.head;
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t host, keys.IdOf(head.host));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t event, keys.IdOf(head.event));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add,
      connection_.Prepare("INSERT INTO slice(host, begin_ns, end_ns, clock_error_ns, clock_hz, "
                          "event, is_time, traced, period, count, gaps_ns) "
                          "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  add.Bind(host).Bind(head.begin_ns).Bind(head.end_ns);
  add.Bind(static_cast<int64_t>(head.clock_error_ns)).Bind(static_cast<int64_t>(head.clock_hz));
  add.Bind(event).Bind(int64_t{head.is_time}).Bind(int64_t{head.traced}).Bind(head.period);
  add.Bind(static_cast<int64_t>(slice.count)).Bind(slice.gaps_ns);
  XENOSCOPE_RETURN_IF_ERROR(add.Run());
  const int64_t id = connection_.LastRowId();
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string packed, Pack(slice.sums, keys));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add_sums,
                             connection_.Prepare("INSERT INTO sums VALUES(?, ?)"));
  XENOSCOPE_RETURN_IF_ERROR(add_sums.Bind(id).Bind(AsBytes(packed)).Run());
  return id;
}

absl::StatusOr<std::vector<SqliteStore::StoredHead>> SqliteStore::StoredHeads(
    const Selection& selection) const {
  std::string sql =
      "SELECT id, host, begin_ns, end_ns, clock_error_ns, clock_hz, event, is_time, traced, "
      "period, count, gaps_ns FROM slice WHERE begin_ns >= ? AND begin_ns < ?";
  if (!selection.hosts.empty()) {
    const std::vector<std::string_view> places(selection.hosts.size(), "?");
    sql += fmt::format(" AND host IN (SELECT id FROM name WHERE text IN ({}))",
                       fmt::join(places, ", "));
  }
  // The plus keeps it from the index: there are few events.
  if (!selection.event.empty()) sql += " AND +event = (SELECT id FROM name WHERE text = ?)";
  XENOSCOPE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare(sql + " ORDER BY begin_ns"));
  select.Bind(selection.since_ns).Bind(selection.until_ns);
  for (const std::string& host : selection.hosts) select.Bind(std::string_view(host));
  if (!selection.event.empty()) select.Bind(std::string_view(selection.event));
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyReader names, SqliteKeyReader::Make(connection_, dictionary));
  std::vector<StoredHead> heads;
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return heads;
    StoredHead& stored = heads.emplace_back();
    stored.id = select.Integer(0);
    stored.head = {.host = {},
                   .begin_ns = select.Integer(2),
                   .end_ns = select.Integer(3),
                   .clock_error_ns = static_cast<uint64_t>(select.Integer(4)),
                   .clock_hz = static_cast<uint64_t>(select.Integer(5)),
                   .event = {},
                   .is_time = select.Integer(7) != 0,
                   .traced = select.Integer(8) != 0,
                   .period = select.Real(9)};
    stored.count = static_cast<uint64_t>(select.Integer(10));
    stored.gaps_ns = select.Integer(11);
    XENOSCOPE_RETURN_IF_ERROR(names.ReadName(select.Integer(1), stored.head.host));
    XENOSCOPE_RETURN_IF_ERROR(names.ReadName(select.Integer(6), stored.head.event));
  }
}

absl::StatusOr<std::vector<SliceHead>> SqliteStore::Heads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> stored, StoredHeads(selection));
  std::vector<SliceHead> heads;
  heads.reserve(stored.size());
  for (const StoredHead& each : stored) heads.push_back(each.head);
  return heads;
}

absl::StatusOr<std::vector<SliceHead>> SqliteStore::PushedHeads(const Selection& selection) const {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> stored, StoredHeads(selection));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement select,
      connection_.Prepare("SELECT begin_ns, end_ns FROM piece WHERE slice = ? AND begin_ns < ?"));
  std::vector<SliceHead> heads;
  for (const StoredHead& each : stored) {
    if (each.count == 1) {
      heads.push_back(each.head);
      continue;
    }
    select.Bind(each.id).Bind(selection.until_ns);
    while (true) {
      XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
      if (!found) break;
      SliceHead& head = heads.emplace_back(each.head);
      head.begin_ns = select.Integer(0);
      head.end_ns = select.Integer(1);
    }
  }
  return heads;
}

absl::StatusOr<Store::Joined> SqliteStore::Join(const Selection& selection, int64_t interval_ns) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<SliceHead> heads, Heads(selection));
  absl::btree_map<std::tuple<int64_t, std::string, std::string>, size_t> intervals;
  for (const SliceHead& head : heads) {
    ++intervals[{head.begin_ns - head.begin_ns % interval_ns, head.host, head.event}];
  }
  Joined joined;
  for (const auto& [key, slices] : intervals) {
    const auto& [begin, host, event] = key;
    if (slices < 2) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(
        const Joined more,
        JoinInterval({.hosts = {host},
                      .since_ns = std::max(begin, selection.since_ns),
                      .until_ns = std::min(begin + interval_ns, selection.until_ns),
                      .event = event}));
    joined.from += more.from;
    joined.to += more.to;
  }
  // Later slices use the pages that became free. A recorder joins each hour, which must not write a
  // large file anew each time.
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t free, connection_.Number("PRAGMA freelist_count"));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t pages, connection_.Number("PRAGMA page_count"));
  constexpr int64_t kLeastPart = 16;
  if (free > pages / kLeastPart) XENOSCOPE_RETURN_IF_ERROR(connection_.Vacuum());
  return joined;
}

absl::StatusOr<Store::Joined> SqliteStore::JoinInterval(const Selection& selection) const {
  // The slices of an interval are joined, or none.
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> heads, StoredHeads(selection));
  absl::btree_map<JoinKey, std::vector<StoredHead>> groups;
  for (const StoredHead& each : heads) groups[JoinKeyOf(each.head)].push_back(each);
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyReader reader,
                             SqliteKeyReader::Make(connection_, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyWriter writer,
                             SqliteKeyWriter::Make(connection_, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteSums stored, SqliteSums::Make(connection_));
  Joined joined;
  for (const auto& [key, group] : groups) {
    if (group.size() < 2) continue;
    SliceJoiner joiner;
    for (const StoredHead& each : group) {
      Slice slice{each.head, {}, each.count, each.gaps_ns};
      XENOSCOPE_RETURN_IF_ERROR(stored.Read(each.id, reader, {}, slice.sums));
      XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice, dictionary));
      joiner.Add(slice);
    }
    XENOSCOPE_RETURN_IF_ERROR(Replace(group, joiner.Take(), writer));
    joined.from += group.size();
    ++joined.to;
  }
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  return joined;
}

absl::Status SqliteStore::Replace(const std::vector<StoredHead>& slices, const Slice& joined,
                                  KeyWriter& keys) const {
  XENOSCOPE_ASSIGN_OR_RETURN(Statement remove,
                             connection_.Prepare("DELETE FROM slice WHERE id = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement remove_sums,
                             connection_.Prepare("DELETE FROM sums WHERE slice = ?"));
  for (const StoredHead& each : slices) {
    XENOSCOPE_RETURN_IF_ERROR(remove.Bind(each.id).Run());
    XENOSCOPE_RETURN_IF_ERROR(remove_sums.Bind(each.id).Run());
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t id, Insert(joined, keys));
  // Those of slices that were joined before move to the new one.
  XENOSCOPE_ASSIGN_OR_RETURN(Statement move,
                             connection_.Prepare("UPDATE piece SET slice = ? WHERE slice = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add,
                             connection_.Prepare("INSERT INTO piece VALUES(?, ?, ?)"));
  for (const StoredHead& each : slices) {
    if (each.count > 1) {
      XENOSCOPE_RETURN_IF_ERROR(move.Bind(id).Bind(each.id).Run());
    } else {
      XENOSCOPE_RETURN_IF_ERROR(add.Bind(id).Bind(each.head.begin_ns).Bind(each.head.end_ns).Run());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SqliteStore::StoredIds(const Selection& selection) const {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> stored, StoredHeads(selection));
  std::vector<int64_t> ids;
  ids.reserve(stored.size());
  for (const StoredHead& each : stored) ids.push_back(each.id);
  return ids;
}

absl::StatusOr<uint64_t> SqliteStore::Remove(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> slices, StoredIds(selection));
  XENOSCOPE_RETURN_IF_ERROR(RemoveSlices(connection_, slices));
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  XENOSCOPE_RETURN_IF_ERROR(connection_.Vacuum());
  return slices.size();
}

absl::StatusOr<uint64_t> SqliteStore::EraseDomain(const Selection& selection,
                                                  const std::string& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> slices, StoredIds(selection));
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t having, EraseDomainNames(connection_, slices, domain));
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  // Names that were erased are still in free pages of the file.
  XENOSCOPE_RETURN_IF_ERROR(connection_.Vacuum());
  return having;
}

absl::Status SqliteStore::PutChecked(const std::string& build_id,
                                     const std::vector<ImageFunction>& functions) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement remove,
                             connection_.Prepare("DELETE FROM function WHERE build_id = ?"));
  XENOSCOPE_RETURN_IF_ERROR(remove.Bind(std::string_view(build_id)).Run());
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add,
                             connection_.Prepare("INSERT INTO function VALUES(?, ?, ?, ?)"));
  for (const ImageFunction& function : functions) {
    add.Bind(std::string_view(build_id)).Bind(static_cast<int64_t>(function.begin));
    add.Bind(static_cast<int64_t>(function.end)).Bind(std::string_view(function.name));
    XENOSCOPE_RETURN_IF_ERROR(add.Run());
  }
  return transaction.Commit();
}

absl::StatusOr<std::vector<ImageFunction>> SqliteStore::Functions(const std::string& build_id) {
  std::vector<ImageFunction> functions;
  XENOSCOPE_ASSIGN_OR_RETURN(
      const int64_t tables,
      connection_.Number("SELECT count(*) FROM sqlite_master WHERE name = 'function'"));
  if (tables == 0) return functions;  // of version 3
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement select,
      connection_.Prepare(
          "SELECT begin, end, name FROM function WHERE build_id = ? ORDER BY begin LIMIT ?"));
  select.Bind(std::string_view(build_id)).Bind(static_cast<int64_t>(kMaxImageFunctions) + 1);
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return functions;
    functions.push_back({static_cast<uint64_t>(select.Integer(0)),
                         static_cast<uint64_t>(select.Integer(1)), std::string(select.Text(2))});
  }
}

absl::Status SqliteStore::ReadUnchecked(const Selection& selection, const ReadAhead::Sink& sink) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<StoredHead> heads, StoredHeads(selection));
  std::ranges::stable_sort(
      heads, {}, [](const StoredHead& each) -> const std::string& { return each.head.host; });
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyReader keys, SqliteKeyReader::Make(connection_, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteSums sums, SqliteSums::Make(connection_));
  Slice slice;
  for (const StoredHead& stored : heads) {
    slice.head = stored.head;
    slice.count = stored.count;
    slice.gaps_ns = stored.gaps_ns;
    XENOSCOPE_RETURN_IF_ERROR(sums.Read(stored.id, keys, selection.wanted, slice.sums));
    XENOSCOPE_RETURN_IF_ERROR(sink(slice, dictionary));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::store
