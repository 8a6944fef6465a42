#include "store/sqlite/removal.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/error.h"
#include "base/mode.h"
#include "store/domain_eraser.h"
#include "store/sqlite/sqlite_dictionary.h"
#include "store/sqlite/sqlite_sums.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

// The entries that are kept, by table.
constexpr char kTemporaryTables[] = R"sql(
DROP TABLE IF EXISTS temp.kept_vcpu;
DROP TABLE IF EXISTS temp.kept_context;
DROP TABLE IF EXISTS temp.kept_code;
DROP TABLE IF EXISTS temp.kept_name;
CREATE TEMP TABLE kept_vcpu(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE kept_context(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE kept_code(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE kept_name(id INTEGER PRIMARY KEY);
)sql";

// Names last, since keys refer to these.
constexpr char kDropOthers[] = R"sql(
DELETE FROM vcpu WHERE id NOT IN (SELECT id FROM kept_vcpu);
DELETE FROM context WHERE id NOT IN (SELECT id FROM kept_context);
DELETE FROM code WHERE id NOT IN (SELECT id FROM kept_code);
DELETE FROM name WHERE id NOT IN
  (SELECT id FROM kept_name UNION SELECT host FROM slice UNION SELECT event FROM slice
   UNION SELECT domain FROM vcpu UNION SELECT exit FROM context UNION SELECT image FROM code
   UNION SELECT function FROM code);
)sql";

// Notes the numbers in the file of all these keys.
template <typename Key>
absl::Status Keep(const Connection& connection, std::string_view table, KeyWriter& writer,
                  const std::vector<Key>& keys) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add, connection.Prepare(fmt::format("INSERT INTO kept_{} VALUES(?)", table)));
  for (const Key& key : keys) {
    XENOSCOPE_ASSIGN_OR_RETURN(const int64_t id, writer.IdOf(key));
    XENOSCOPE_RETURN_IF_ERROR(add.Bind(id).Run());
  }
  return absl::OkStatus();
}

// All numbers of a table of keys.
template <typename Key, typename Number>
std::vector<Number> NumbersOf(const KeyTable<Key, Number>& keys) {
  std::vector<Number> numbers;
  for (uint32_t i = 0; i < keys.all().size(); ++i) numbers.push_back({i});
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> AllSlices(const Connection& connection) {
  XENOSCOPE_ASSIGN_OR_RETURN(Statement select, connection.Prepare("SELECT slice FROM sums"));
  std::vector<int64_t> slices;
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return slices;
    slices.push_back(select.Integer(0));
  }
}

absl::Status DropUnusedKeys(const Connection& connection) {
  // A dictionary has what has been read, so in the end all that is used.
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyReader keys, SqliteKeyReader::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteSums stored, SqliteSums::Make(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> slices, AllSlices(connection));
  absl::flat_hash_set<std::string> names;
  SliceSums sums;
  for (const int64_t slice : slices) {
    XENOSCOPE_RETURN_IF_ERROR(stored.Read(slice, keys, {}, sums));
    for (const Counter& counter : sums.counters) names.insert(counter.name);
    for (const TraceSums& row : sums.trace) names.insert({row.name, row.part, row.other});
  }
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(kTemporaryTables));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyWriter writer, SqliteKeyWriter::Make(connection, dictionary));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "vcpu", writer, NumbersOf(dictionary.vcpus)));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "context", writer, NumbersOf(dictionary.contexts)));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "code", writer, NumbersOf(dictionary.codes)));
  XENOSCOPE_RETURN_IF_ERROR(
      Keep(connection, "name", writer, std::vector<std::string>(names.begin(), names.end())));
  return connection.Run(kDropOthers);
}

// Finds names that say nothing, which nothing has yet: "(removed 17)".
absl::StatusOr<DomainEraser::NextName> EmptyNames(const Connection& connection) {
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t first,
                             connection.Number("SELECT coalesce(max(id), 0) + 1 FROM name"));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement statement,
                             connection.Prepare("SELECT count(*) FROM name WHERE text = ?"));
  const auto find = std::make_shared<Statement>(std::move(statement));
  return [next = first, find]() mutable -> absl::StatusOr<std::string> {
    while (true) {
      std::string text = fmt::format("(removed {})", next++);
      XENOSCOPE_RETURN_IF_ERROR(find->Bind(std::string_view(text)).Step().status());
      const bool is_free = find->Integer(0) == 0;
      XENOSCOPE_RETURN_IF_ERROR(find->Step().status());
      if (is_free) return text;
    }
  };
}

absl::StatusOr<std::vector<std::string>> NamesOfXen(const Connection& connection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement select,
      connection.Prepare("SELECT text FROM name WHERE id IN (SELECT image FROM code WHERE mode = "
                         "?1 UNION SELECT function FROM code WHERE mode = ?1)"));
  select.Bind(static_cast<int64_t>(Mode::kXen));
  std::vector<std::string> names;
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return names;
    names.push_back(select.Text(0));
  }
}

}  // namespace

absl::Status RemoveSlices(const Connection& connection, const std::vector<int64_t>& slices) {
  for (const char* const sql :
       {"DELETE FROM sums WHERE slice = ?", "DELETE FROM piece WHERE slice = ?",
        "DELETE FROM slice WHERE id = ?"}) {
    XENOSCOPE_ASSIGN_OR_RETURN(Statement remove, connection.Prepare(sql));
    for (const int64_t slice : slices) XENOSCOPE_RETURN_IF_ERROR(remove.Bind(slice).Run());
  }
  return DropUnusedKeys(connection);
}

absl::StatusOr<uint64_t> EraseDomainNames(const Connection& connection,
                                          const std::vector<int64_t>& slices,
                                          const std::string& domain) {
  Dictionary dictionary;
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyReader keys, SqliteKeyReader::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteKeyWriter writer, SqliteKeyWriter::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(SqliteSums stored, SqliteSums::Make(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement update,
                             connection.Prepare("UPDATE sums SET packed = ? WHERE slice = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> kept, NamesOfXen(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(DomainEraser::NextName next_name, EmptyNames(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(DomainEraser eraser,
                             DomainEraser::Make(domain, kept, std::move(next_name)));
  uint64_t having = 0;
  SliceSums sums;
  for (const int64_t slice : slices) {
    XENOSCOPE_RETURN_IF_ERROR(stored.Read(slice, keys, {}, sums));
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, eraser.Erase(sums, dictionary));
    if (!found) continue;
    ++having;
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string bytes, Pack(sums, writer));
    XENOSCOPE_RETURN_IF_ERROR(update.Bind(AsBytes(bytes)).Bind(slice).Run());
  }
  if (having == 0) return NotFoundError("none of these slices has a domain '{}'", domain);
  XENOSCOPE_RETURN_IF_ERROR(DropUnusedKeys(connection));
  return having;
}

}  // namespace xenoscope::store
