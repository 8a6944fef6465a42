#include "store/sqlite/sqlite_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "store/bounded_text.h"
#include "store/known_slice.h"
#include "store/sqlite/packed_sums.h"
#include "store/sqlite/removal.h"

namespace xenoscope::store {
namespace {

// The version of the schema, in the file's user_version.
constexpr int64_t kVersion = 2;
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
  UNIQUE(host, begin_ns, event));
CREATE INDEX slice_by_time ON slice(begin_ns);
CREATE TABLE sums(slice INTEGER PRIMARY KEY, packed BLOB NOT NULL);
)sql";

absl::Status MakeTables(const Connection& connection) {
  return connection.Run(fmt::format("{}PRAGMA application_id = {}; PRAGMA user_version = {};",
                                    kTables, kApplicationId, kVersion)
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

absl::StatusOr<bool> SqliteStore::PushChecked(const Slice& slice, const Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection_));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<SliceHead> near, Heads(Near(slice.head)));
  XENOSCOPE_ASSIGN_OR_RETURN(const bool known, IsKnown(slice.head, near));
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
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string packed, Pack(slice.sums, keys));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add_sums,
                             connection_.Prepare("INSERT INTO sums VALUES(?, ?)"));
  XENOSCOPE_RETURN_IF_ERROR(add_sums.Bind(id).Bind(AsBytes(packed)).Run());
  XENOSCOPE_RETURN_IF_ERROR(transaction.Commit());
  return true;
}

absl::StatusOr<std::vector<SqliteStore::StoredHead>> SqliteStore::StoredHeads(
    const Selection& selection) const {
  std::string sql =
      "SELECT id, host, begin_ns, end_ns, clock_error_ns, clock_hz, event, is_time, traced, period "
      "FROM slice WHERE begin_ns >= ? AND begin_ns < ?";
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
  XENOSCOPE_ASSIGN_OR_RETURN(KeyReader names, KeyReader::Make(connection_, dictionary));
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
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<StoredHead> heads, StoredHeads(selection));
  std::ranges::stable_sort(
      heads, {}, [](const StoredHead& each) -> const std::string& { return each.head.host; });
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(KeyReader keys, KeyReader::Make(connection_, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(PackedReader packed, PackedReader::Make(connection_));
  Slice slice;
  for (const StoredHead& stored : heads) {
    slice.head = stored.head;
    XENOSCOPE_RETURN_IF_ERROR(packed.Read(stored.id, keys, slice.sums));
    XENOSCOPE_RETURN_IF_ERROR(visit(slice, dictionary));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::store
