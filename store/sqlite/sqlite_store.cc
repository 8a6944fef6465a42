#include "store/sqlite/sqlite_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "store/bounded_text.h"
#include "store/sqlite/removal.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

// The version of the schema, in the file's user_version. A version that adds something migrates
// older files in Migrate.
constexpr int64_t kVersion = 1;
constexpr int64_t kApplicationId = 0x58656e6f;  // "Xeno", in the file's header

// The tables of keys, and the slices' heads. Those of sums come from store/tables.h.
constexpr char kKeyTables[] = R"sql(
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
  UNIQUE(host, begin_ns, event));
CREATE INDEX slice_by_time ON slice(begin_ns);
)sql";

template <typename Sums>
std::string KeysOf() {
  const auto& columns = Table<Sums>::kColumns;
  return fmt::format("{}", fmt::join(columns.begin(), columns.begin() + Table<Sums>::kKeys, ", "));
}

// REAL columns take whole numbers as such, which need few bytes.
std::string SumTables() {
  std::string sql;
  ForEachTable([&]<typename Sums>() {
    sql += fmt::format("CREATE TABLE {}(slice INTEGER NOT NULL", Table<Sums>::kName);
    for (size_t i = 0; i < Table<Sums>::kColumns.size(); ++i) {
      sql += fmt::format(", {} {} NOT NULL", Table<Sums>::kColumns.at(i),
                         i < Table<Sums>::kKeys ? "INTEGER" : "REAL");
    }
    sql += fmt::format(", PRIMARY KEY(slice, {})) WITHOUT ROWID;\n", KeysOf<Sums>());
    return absl::OkStatus();
  }).IgnoreError();
  return sql;
}

absl::Status MakeTables(const Connection& connection) {
  return connection.Run(fmt::format("{}{}PRAGMA application_id = {}; PRAGMA user_version = {};",
                                    kKeyTables, SumTables(), kApplicationId, kVersion)
                            .c_str());
}

// Makes the tables in an empty file, and checks the version of others.
absl::Status Prepare(const Connection& connection, const std::string& path, Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t application, connection.Number("PRAGMA application_id"));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t tables,
                             connection.Number("SELECT count(*) FROM sqlite_master"));
  if (application == 0 && tables == 0 && access == Access::kWrite) return MakeTables(connection);
  if (application != kApplicationId) {
    return InvalidError("{}: a database of another program, not a store of xenoscope push", path);
  }
  if (version != kVersion) {
    return PreconditionError(
        "{}: a store of version {}; this xenoscope reads version {}: use the version of xenoscope "
        "that wrote it, or push its recordings to a new file",
        path, version, kVersion);
  }
  return absl::OkStatus();
}

// Binds fields of rows, keys by their numbers in the file.
class RowWriter {
 public:
  RowWriter(KeyWriter& keys, Statement& statement) : keys_(keys), statement_(statement) {}
  absl::Status Bind(double number) {
    statement_.Bind(number);
    return absl::OkStatus();
  }
  template <std::unsigned_integral Number>
  absl::Status Bind(Number number) {
    statement_.Bind(static_cast<int64_t>(number));
    return absl::OkStatus();
  }
  template <typename Key>
  requires(!std::is_arithmetic_v<Key>) absl::Status Bind(const Key& key) {
    XENOSCOPE_ASSIGN_OR_RETURN(const int64_t id, keys_.IdOf(key));
    statement_.Bind(id);
    return absl::OkStatus();
  }

 private:
  KeyWriter& keys_;
  Statement& statement_;
};

template <typename Sums>
absl::Status WriteRows(const Connection& connection, KeyWriter& keys, int64_t slice,
                       const std::vector<Sums>& rows) {
  const auto& columns = Table<Sums>::kColumns;
  std::vector<std::string> sums;
  for (size_t i = Table<Sums>::kKeys; i < columns.size(); ++i) {
    sums.push_back(fmt::format("{0} = {0} + excluded.{0}", columns.at(i)));
  }
  std::string places = "?";
  for (size_t i = 0; i < columns.size(); ++i) places += ", ?";
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add,
      connection.Prepare(fmt::format(
          "INSERT INTO {}(slice, {}) VALUES({}) ON CONFLICT(slice, {}) DO UPDATE SET {}",
          Table<Sums>::kName, fmt::join(columns, ", "), places, KeysOf<Sums>(),
          fmt::join(sums, ", "))));
  RowWriter writer(keys, add);
  for (const Sums& row : rows) {
    add.Bind(slice);
    absl::Status status;
    std::apply(
        [&](const auto&... fields) { (void)((status = writer.Bind(fields), status.ok()) && ...); },
        Table<Sums>::Fields(row));
    XENOSCOPE_RETURN_IF_ERROR(status);
    XENOSCOPE_RETURN_IF_ERROR(add.Run());
  }
  return absl::OkStatus();
}

// Reads fields of rows from the columns of a statement.
class RowReader {
 public:
  RowReader(KeyReader& keys, const Statement& statement) : keys_(keys), statement_(statement) {}
  absl::Status Read(double& number) {
    number = statement_.Real(next_++);
    return absl::OkStatus();
  }
  template <std::unsigned_integral Number>
  absl::Status Read(Number& number) {
    const int64_t stored = statement_.Integer(next_++);
    number = static_cast<Number>(stored);
    if (std::cmp_equal(number, stored)) return absl::OkStatus();
    return InvalidError("the store is damaged: the number {} is out of range", stored);
  }
  template <typename Key>
  requires(!std::is_arithmetic_v<Key>) absl::Status Read(Key& key) {
    return keys_.Read(statement_.Integer(next_++), key);
  }

 private:
  KeyReader& keys_;
  const Statement& statement_;
  int next_ = 0;
};

// The statements that read the rows of a slice from each table.
template <typename Sums>
absl::Status ReadRows(const Connection& connection, KeyReader& keys, int64_t slice,
                      std::vector<Sums>& rows) {
  rows.clear();
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement select,
      connection.Prepare(fmt::format("SELECT {} FROM {} WHERE slice = ?",
                                     fmt::join(Table<Sums>::kColumns, ", "), Table<Sums>::kName)));
  select.Bind(slice);
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return absl::OkStatus();
    RowReader reader(keys, select);
    absl::Status status;
    std::apply([&](auto&... fields) { (void)((status = reader.Read(fields), status.ok()) && ...); },
               Table<Sums>::Fields(rows.emplace_back()));
    XENOSCOPE_RETURN_IF_ERROR(status);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> SqliteStore::Open(const std::string& path, Access access) {
  XENOSCOPE_ASSIGN_OR_RETURN(Connection connection, Connection::Open(path, access));
  if (access == Access::kWrite) {
    // In a transaction, so that only one of several processes makes the tables.
    XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
    XENOSCOPE_RETURN_IF_ERROR(Prepare(connection, path, access));
    XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  } else {
    XENOSCOPE_RETURN_IF_ERROR(Prepare(connection, path, access));
  }
  return std::unique_ptr<Store>(new SqliteStore(std::move(connection)));
}

absl::StatusOr<bool> SqliteStore::IsKnown(const SliceHead& head) const {
  Selection same{.hosts = {head.host}, .event = head.event};
  same.until_ns = head.end_ns;
  // No slice is longer, so that the index bounds this search.
  same.since_ns = head.begin_ns - kMaxSliceNs;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> near, StoredHeads(same));
  for (const StoredHead& other : near) {
    if (other.head.begin_ns == head.begin_ns && other.head.end_ns == head.end_ns) return true;
    if (other.head.end_ns <= head.begin_ns) continue;
    return PreconditionError(
        "host {} already has a slice that overlaps this one in time and is not the same: two hosts "
        "push under one name, or its clock was set back; give each host a name of its own with "
        "--host",
        head.host);
  }
  return false;
}

absl::StatusOr<bool> SqliteStore::PushChecked(const Slice& slice, const Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const bool known, IsKnown(slice.head));
  if (known) return false;
  XENOSCOPE_ASSIGN_OR_RETURN(KeyWriter keys, KeyWriter::Make(connection_, dictionary));
  const SliceHead& head = slice.head;
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t host, keys.IdOf(head.host));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t event, keys.IdOf(head.event));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add,
      connection_.Prepare("INSERT INTO slice(host, begin_ns, end_ns, clock_error_ns, clock_hz, "
                          "event, is_time, traced, period) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  add.Bind(host).Bind(head.begin_ns).Bind(head.end_ns);
  add.Bind(static_cast<int64_t>(head.clock_error_ns)).Bind(static_cast<int64_t>(head.clock_hz));
  add.Bind(event).Bind(int64_t{head.is_time}).Bind(int64_t{head.traced}).Bind(head.period);
  XENOSCOPE_RETURN_IF_ERROR(add.Run());
  const int64_t id = connection_.LastRowId();
  XENOSCOPE_RETURN_IF_ERROR(ForEachTable([&]<typename Sums>() {
    return WriteRows(connection_, keys, id, slice.sums.*Table<Sums>::kRows);
  }));
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  return true;
}

absl::StatusOr<std::vector<SqliteStore::StoredHead>> SqliteStore::StoredHeads(
    const Selection& selection) const {
  std::string sql =
      "SELECT slice.id, host.text, begin_ns, end_ns, clock_error_ns, clock_hz, event.text, "
      "is_time, "
      "traced, period FROM slice JOIN name AS host ON host.id = slice.host "
      "JOIN name AS event ON event.id = slice.event WHERE begin_ns >= ? AND begin_ns < ?";
  if (!selection.hosts.empty()) {
    std::vector<std::string_view> places(selection.hosts.size(), "?");
    sql += fmt::format(" AND slice.host IN (SELECT id FROM name WHERE text IN ({}))",
                       fmt::join(places, ", "));
  }
  if (!selection.event.empty()) sql += " AND event.text = ?";
  XENOSCOPE_ASSIGN_OR_RETURN(Statement select, connection_.Prepare(sql + " ORDER BY begin_ns"));
  select.Bind(selection.since_ns).Bind(selection.until_ns);
  for (const std::string& host : selection.hosts) select.Bind(std::string_view(host));
  if (!selection.event.empty()) select.Bind(std::string_view(selection.event));
  std::vector<StoredHead> heads;
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return heads;
    heads.push_back({.id = select.Integer(0),
                     .head = {.host = BoundedName(select.Text(1)),
                              .begin_ns = select.Integer(2),
                              .end_ns = select.Integer(3),
                              .clock_error_ns = static_cast<uint64_t>(select.Integer(4)),
                              .clock_hz = static_cast<uint64_t>(select.Integer(5)),
                              .event = BoundedName(select.Text(6)),
                              .is_time = select.Integer(7) != 0,
                              .traced = select.Integer(8) != 0,
                              .period = select.Real(9)}});
  }
}

absl::StatusOr<std::vector<SliceHead>> SqliteStore::Heads(const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> stored, StoredHeads(selection));
  std::vector<SliceHead> heads;
  heads.reserve(stored.size());
  for (const StoredHead& each : stored) heads.push_back(each.head);
  return heads;
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

absl::Status SqliteStore::ReadUnchecked(const Selection& selection, const SliceVisitor& visit) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredHead> heads, StoredHeads(selection));
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(KeyReader keys, KeyReader::Make(connection_, dictionary));
  Slice slice;
  for (const StoredHead& stored : heads) {
    slice.head = stored.head;
    XENOSCOPE_RETURN_IF_ERROR(ForEachTable([&]<typename Sums>() {
      return ReadRows(connection_, keys, stored.id, slice.sums.*Table<Sums>::kRows);
    }));
    XENOSCOPE_RETURN_IF_ERROR(visit(slice, dictionary));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::store
