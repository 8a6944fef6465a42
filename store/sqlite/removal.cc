#include "store/sqlite/removal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/mode.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

// What is to be changed: slices, and for each number of a key that goes the one in its place.
constexpr char kTemporaryTables[] = R"sql(
DROP TABLE IF EXISTS temp.chosen;
DROP TABLE IF EXISTS temp.new_vcpu;
DROP TABLE IF EXISTS temp.new_code;
DROP TABLE IF EXISTS temp.new_name;
CREATE TEMP TABLE chosen(slice INTEGER PRIMARY KEY);
CREATE TEMP TABLE new_vcpu(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE new_code(old INTEGER PRIMARY KEY, new INTEGER);
CREATE TEMP TABLE new_name(old INTEGER PRIMARY KEY, new INTEGER);
)sql";

// The keys that nothing refers to, names last, since keys refer to these.
constexpr char kDropUnusedCodes[] = R"sql(
DELETE FROM code WHERE id NOT IN
  (SELECT code FROM part UNION SELECT code FROM code_sum UNION SELECT code FROM cross_sum);
)sql";
constexpr char kDropUnusedNames[] = R"sql(
DELETE FROM name WHERE id NOT IN
  (SELECT host FROM slice UNION SELECT event FROM slice UNION SELECT domain FROM vcpu
   UNION SELECT exit FROM context UNION SELECT image FROM code UNION SELECT function FROM code
   UNION SELECT name FROM counter);
)sql";

// Codes are of one mode, image and function, or of some of these (CrossSums).
constexpr char kCodesOfDomain[] = R"sql(
INSERT INTO new_code SELECT DISTINCT code, code FROM
  (SELECT slice, vcpu, code FROM part UNION ALL SELECT slice, vcpu, code FROM code_sum
   UNION ALL SELECT slice, vcpu, code FROM cross_sum)
  WHERE slice IN (SELECT slice FROM chosen) AND vcpu IN (SELECT old FROM new_vcpu);
)sql";
constexpr char kNewCodes[] = R"sql(
INSERT OR IGNORE INTO code(mode, image, function)
  SELECT code.mode, coalesce(image.new, code.image), coalesce(function.new, code.function)
  FROM new_code JOIN code ON code.id = new_code.old
  LEFT JOIN new_name AS image ON image.old = code.image
  LEFT JOIN new_name AS function ON function.old = code.function;
UPDATE new_code SET new =
  (SELECT named.id FROM code JOIN code AS named ON named.mode = code.mode
     AND named.image = coalesce((SELECT new FROM new_name WHERE old = code.image), code.image)
     AND named.function =
       coalesce((SELECT new FROM new_name WHERE old = code.function), code.function)
   WHERE code.id = new_code.old);
)sql";

template <typename Sums>
bool HasKey(std::string_view key) {
  const auto& columns = Table<Sums>::kColumns;
  const auto end = columns.begin() + Table<Sums>::kKeys;
  return std::find(columns.begin(), end, key) != end;
}

absl::Status DropUnusedKeys(const Connection& connection) {
  std::vector<std::string> vcpus;
  std::vector<std::string> contexts;
  ForEachTable([&]<typename Sums>() {
    const std::string_view table = Table<Sums>::kName;
    if (HasKey<Sums>("vcpu")) vcpus.push_back(fmt::format("SELECT vcpu FROM {}", table));
    for (const char* const key : {"context", "a", "b"}) {
      if (HasKey<Sums>(key)) contexts.push_back(fmt::format("SELECT {} FROM {}", key, table));
    }
    return absl::OkStatus();
  }).IgnoreError();
  const std::string sql = fmt::format(
      "DELETE FROM vcpu WHERE id NOT IN ({}); DELETE FROM context WHERE id NOT IN ({});",
      fmt::join(vcpus, " UNION "), fmt::join(contexts, " UNION "));
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(sql.c_str()));
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(kDropUnusedCodes));
  return connection.Run(kDropUnusedNames);
}

absl::Status Choose(const Connection& connection, const std::vector<int64_t>& slices) {
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(kTemporaryTables));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add, connection.Prepare("INSERT INTO chosen VALUES(?)"));
  for (const int64_t slice : slices) XENOSCOPE_RETURN_IF_ERROR(add.Bind(slice).Run());
  return absl::OkStatus();
}

// Adds a name that says nothing, which nothing has yet. Returns its number.
absl::StatusOr<int64_t> AddEmptyName(const Connection& connection) {
  XENOSCOPE_ASSIGN_OR_RETURN(int64_t number,
                             connection.Number("SELECT coalesce(max(id), 0) + 1 FROM name"));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement find,
                             connection.Prepare("SELECT count(*) FROM name WHERE text = ?"));
  std::string text;
  for (;; ++number) {
    text = fmt::format("(removed {})", number);
    XENOSCOPE_RETURN_IF_ERROR(find.Bind(std::string_view(text)).Step().status());
    const bool is_free = find.Integer(0) == 0;
    XENOSCOPE_RETURN_IF_ERROR(find.Step().status());
    if (is_free) break;
  }
  XENOSCOPE_ASSIGN_OR_RETURN(Statement add, connection.Prepare("INSERT INTO name(text) VALUES(?)"));
  XENOSCOPE_RETURN_IF_ERROR(add.Bind(std::string_view(text)).Run());
  return connection.LastRowId();
}

// Notes for each vCPU of the domain the one in its place.
absl::Status ReplaceVcpus(const Connection& connection, const std::string& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t name, AddEmptyName(connection));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add,
      connection.Prepare("INSERT INTO vcpu(domain, number) SELECT ?, number FROM vcpu "
                         "WHERE domain = (SELECT id FROM name WHERE text = ?)"));
  XENOSCOPE_RETURN_IF_ERROR(add.Bind(name).Bind(std::string_view(domain)).Run());
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement note,
      connection.Prepare("INSERT INTO new_vcpu SELECT vcpu.id, other.id FROM vcpu "
                         "JOIN vcpu AS other ON other.number = vcpu.number AND other.domain = ? "
                         "WHERE vcpu.domain = (SELECT id FROM name WHERE text = ?)"));
  return note.Bind(name).Bind(std::string_view(domain)).Run();
}

// Gives each of the names that a statement selects another one.
absl::Status ReplaceNames(const Connection& connection, Statement select) {
  std::vector<int64_t> names;
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) break;
    names.push_back(select.Integer(0));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(Statement note,
                             connection.Prepare("INSERT OR IGNORE INTO new_name VALUES(?, ?)"));
  for (const int64_t old : names) {
    XENOSCOPE_ASSIGN_OR_RETURN(const int64_t name, AddEmptyName(connection));
    XENOSCOPE_RETURN_IF_ERROR(note.Bind(old).Bind(name).Run());
  }
  return absl::OkStatus();
}

// Notes for each code of the domain the one in its place: of other names, one for one, so that no
// two rows become one and all sums stay as they are.
absl::Status ReplaceCodes(const Connection& connection) {
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(kCodesOfDomain));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement names,
      connection.Prepare(fmt::format(
          "SELECT id FROM name WHERE text <> '' AND id IN "
          "(SELECT image FROM code JOIN new_code ON old = code.id "
          "UNION SELECT function FROM code JOIN new_code ON old = code.id) AND id NOT IN "
          "(SELECT image FROM code WHERE mode = {0} UNION SELECT function FROM code WHERE mode = "
          "{0})",
          static_cast<int>(Mode::kXen))));
  XENOSCOPE_RETURN_IF_ERROR(ReplaceNames(connection, std::move(names)));
  return connection.Run(kNewCodes);
}

// Replaces the reasons why samples of the domain have no function: "no symbols for web".
absl::Status ReplaceReasons(const Connection& connection, const std::string& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement names,
      connection.Prepare("SELECT DISTINCT name.id FROM name JOIN counter ON counter.name = name.id "
                         "WHERE slice IN (SELECT slice FROM chosen) AND text LIKE 'unresolved.%' "
                         "AND instr(text, ?) > 0"));
  names.Bind(std::string_view(domain));
  XENOSCOPE_RETURN_IF_ERROR(ReplaceNames(connection, std::move(names)));
  XENOSCOPE_RETURN_IF_ERROR(connection.Run(
      "UPDATE name SET text = 'unresolved.' || text WHERE id IN (SELECT new_name.new FROM new_name "
      "JOIN counter ON counter.name = new_name.old)"));
  return connection.Run(
      "UPDATE counter SET name = (SELECT new FROM new_name WHERE old = name) "
      "WHERE slice IN (SELECT slice FROM chosen) AND name IN (SELECT old FROM new_name)");
}

absl::Status UpdateRows(const Connection& connection) {
  return ForEachTable([&]<typename Sums>() {
    if (!HasKey<Sums>("vcpu")) return absl::OkStatus();
    std::string sql = fmt::format("UPDATE {} SET ", Table<Sums>::kName);
    if (HasKey<Sums>("code")) sql += "code = (SELECT new FROM new_code WHERE old = code), ";
    sql +=
        "vcpu = (SELECT new FROM new_vcpu WHERE old = vcpu) "
        "WHERE slice IN (SELECT slice FROM chosen) AND vcpu IN (SELECT old FROM new_vcpu)";
    return connection.Run(sql.c_str());
  });
}

}  // namespace

absl::Status RemoveSlices(const Connection& connection, const std::vector<int64_t>& slices) {
  XENOSCOPE_RETURN_IF_ERROR(Choose(connection, slices));
  XENOSCOPE_RETURN_IF_ERROR(ForEachTable([&]<typename Sums>() {
    return connection.Run(
        fmt::format("DELETE FROM {} WHERE slice IN (SELECT slice FROM chosen)", Table<Sums>::kName)
            .c_str());
  }));
  XENOSCOPE_RETURN_IF_ERROR(
      connection.Run("DELETE FROM slice WHERE id IN (SELECT slice FROM chosen)"));
  return DropUnusedKeys(connection);
}

absl::StatusOr<uint64_t> EraseDomainNames(const Connection& connection,
                                          const std::vector<int64_t>& slices,
                                          const std::string& domain) {
  XENOSCOPE_RETURN_IF_ERROR(Choose(connection, slices));
  XENOSCOPE_RETURN_IF_ERROR(ReplaceVcpus(connection, domain));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const int64_t having,
      connection.Number("SELECT count(DISTINCT slice) FROM vcpu_sum WHERE slice IN (SELECT slice "
                        "FROM chosen) AND vcpu IN (SELECT old FROM new_vcpu)"));
  if (having == 0) return NotFoundError("none of these slices has a domain '{}'", domain);
  XENOSCOPE_RETURN_IF_ERROR(ReplaceCodes(connection));
  XENOSCOPE_RETURN_IF_ERROR(UpdateRows(connection));
  XENOSCOPE_RETURN_IF_ERROR(ReplaceReasons(connection, domain));
  XENOSCOPE_RETURN_IF_ERROR(DropUnusedKeys(connection));
  return static_cast<uint64_t>(having);
}

}  // namespace xenoscope::store
