#include "store/sqlite/removal.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/error.h"
#include "base/mode.h"
#include "store/counters.h"
#include "store/sqlite/packed_sums.h"
#include "store/sqlite/sqlite_dictionary.h"
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
  XENOSCOPE_ASSIGN_OR_RETURN(KeyReader keys, KeyReader::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(PackedReader packed, PackedReader::Make(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> slices, AllSlices(connection));
  absl::flat_hash_set<std::string> names;
  SliceSums sums;
  for (const int64_t slice : slices) {
    XENOSCOPE_RETURN_IF_ERROR(packed.Read(slice, keys, sums));
    for (const Counter& counter : sums.counters) names.insert(counter.name);
    for (const TraceSums& row : sums.trace) names.insert({row.name, row.part, row.other});
  }
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(kTemporaryTables));
  XENOSCOPE_ASSIGN_OR_RETURN(KeyWriter writer, KeyWriter::Make(connection, dictionary));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "vcpu", writer, NumbersOf(dictionary.vcpus)));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "context", writer, NumbersOf(dictionary.contexts)));
  XENOSCOPE_RETURN_IF_ERROR(Keep(connection, "code", writer, NumbersOf(dictionary.codes)));
  XENOSCOPE_RETURN_IF_ERROR(
      Keep(connection, "name", writer, std::vector<std::string>(names.begin(), names.end())));
  return connection.Run(kDropOthers);
}

// Finds names that say nothing, which nothing has yet: "(removed 17)".
class EmptyNames {
 public:
  static absl::StatusOr<EmptyNames> Make(const Connection& connection) {
    XENOSCOPE_ASSIGN_OR_RETURN(const int64_t next,
                               connection.Number("SELECT coalesce(max(id), 0) + 1 FROM name"));
    XENOSCOPE_ASSIGN_OR_RETURN(Statement find,
                               connection.Prepare("SELECT count(*) FROM name WHERE text = ?"));
    return EmptyNames(next, std::move(find));
  }
  absl::StatusOr<std::string> Next() {
    while (true) {
      std::string text = fmt::format("(removed {})", next_++);
      XENOSCOPE_RETURN_IF_ERROR(find_.Bind(std::string_view(text)).Step().status());
      const bool is_free = find_.Integer(0) == 0;
      XENOSCOPE_RETURN_IF_ERROR(find_.Step().status());
      if (is_free) return text;
    }
  }

 private:
  EmptyNames(int64_t next, Statement find) : next_(next), find_(std::move(find)) {}
  int64_t next_;
  Statement find_;
};

// Renames what slices have of a domain: other names, one for one, so that no two rows become one
// and all sums stay as they are.
class DomainEraser {
 public:
  static absl::StatusOr<DomainEraser> Make(const Connection& connection, std::string domain) {
    XENOSCOPE_ASSIGN_OR_RETURN(EmptyNames names, EmptyNames::Make(connection));
    DomainEraser eraser(std::move(domain), std::move(names));
    XENOSCOPE_ASSIGN_OR_RETURN(eraser.new_domain_, eraser.names_.Next());
    XENOSCOPE_RETURN_IF_ERROR(eraser.KeepNamesOfXen(connection));
    return eraser;
  }

  // Changes the sums. Returns whether they have the domain.
  absl::StatusOr<bool> Erase(SliceSums& sums, Dictionary& dictionary) {
    bool found = false;
    const absl::Status erased = ForEachTable([&]<typename Sums>() {
      if constexpr (requires(Sums row) { row.vcpu; }) {
        for (Sums& row : sums.*Table<Sums>::kRows) {
          if (row.vcpu == kAllVcpus || dictionary.vcpus[row.vcpu].domain != domain_) continue;
          found = true;
          XENOSCOPE_RETURN_IF_ERROR(EraseRow(row, dictionary));
        }
      }
      return absl::OkStatus();
    });
    if (!erased.ok()) return erased;
    for (TraceSums& row : sums.trace) {
      if (row.other != domain_) continue;
      found = true;
      row.other = new_domain_;
    }
    if (!found) return false;
    for (Counter& counter : sums.counters) {
      if (!counter.name.starts_with(kUnresolvedCounter) ||
          counter.name.find(domain_) == std::string::npos) {
        continue;
      }
      XENOSCOPE_ASSIGN_OR_RETURN(const std::string name, NewName(counter.name));
      counter.name = std::string(kUnresolvedCounter) + name;
    }
    return true;
  }

 private:
  DomainEraser(std::string domain, EmptyNames names)
      : domain_(std::move(domain)), names_(std::move(names)) {}

  absl::Status KeepNamesOfXen(const Connection& connection) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        Statement select,
        connection.Prepare("SELECT text FROM name WHERE id IN (SELECT image FROM code WHERE mode = "
                           "?1 UNION SELECT function FROM code WHERE mode = ?1)"));
    select.Bind(static_cast<int64_t>(Mode::kXen));
    new_names_[""] = "";
    while (true) {
      XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
      if (!found) return absl::OkStatus();
      const std::string name = select.Text(0);
      new_names_[name] = name;
    }
  }

  absl::StatusOr<std::string> NewName(const std::string& name) {
    const auto known = new_names_.find(name);
    if (known != new_names_.end()) return known->second;
    XENOSCOPE_ASSIGN_OR_RETURN(std::string text, names_.Next());
    return new_names_[name] = std::move(text);
  }

  template <typename Sums>
  absl::Status EraseRow(Sums& row, Dictionary& dictionary) {
    row.vcpu = dictionary.vcpus.Intern({new_domain_, dictionary.vcpus[row.vcpu].number});
    if constexpr (requires { row.code; }) {
      CodeKey code = dictionary.codes[row.code];
      XENOSCOPE_ASSIGN_OR_RETURN(code.image, NewName(code.image));
      XENOSCOPE_ASSIGN_OR_RETURN(code.function, NewName(code.function));
      row.code = dictionary.codes.Intern(code);
    }
    return absl::OkStatus();
  }

  std::string domain_;
  std::string new_domain_;
  EmptyNames names_;
  absl::flat_hash_map<std::string, std::string> new_names_;
};

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
  XENOSCOPE_ASSIGN_OR_RETURN(KeyReader keys, KeyReader::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(KeyWriter writer, KeyWriter::Make(connection, dictionary));
  XENOSCOPE_ASSIGN_OR_RETURN(PackedReader packed, PackedReader::Make(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement update,
                             connection.Prepare("UPDATE sums SET packed = ? WHERE slice = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(DomainEraser eraser, DomainEraser::Make(connection, domain));
  uint64_t having = 0;
  SliceSums sums;
  for (const int64_t slice : slices) {
    XENOSCOPE_RETURN_IF_ERROR(packed.Read(slice, keys, sums));
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
