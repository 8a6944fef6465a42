#include "store/sqlite/sqlite_dictionary.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/mode.h"
#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

// A remembered number; 0 where there is none yet.
EntryId& At(std::vector<EntryId>& ids, uint32_t number) {
  if (number >= ids.size()) ids.resize(number + 1);
  return ids[number];
}

absl::Status NoEntry(std::string_view table, EntryId id) {
  return InvalidError("the store is damaged: the table {} has no good entry {}", table, id);
}

}  // namespace

SqliteKeyWriter::SqliteKeyWriter(const Connection& connection, const Dictionary& dictionary,
                                 Entry name, Entry vcpu, Entry context, Entry code)
    : connection_(connection),
      dictionary_(dictionary),
      name_(std::move(name)),
      vcpu_(std::move(vcpu)),
      context_(std::move(context)),
      code_(std::move(code)) {}

absl::StatusOr<SqliteKeyWriter::Entry> SqliteKeyWriter::Prepare(const Connection& connection,
                                                                std::string_view table,
                                                                std::string_view columns,
                                                                std::string_view places) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement find, connection.Prepare(fmt::format("SELECT id FROM {} WHERE ({}) = ({})", table,
                                                     columns, places)));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement add,
      connection.Prepare(fmt::format("INSERT INTO {}({}) VALUES({})", table, columns, places)));
  return Entry{std::move(find), std::move(add)};
}

absl::StatusOr<SqliteKeyWriter> SqliteKeyWriter::Make(const Connection& connection,
                                                      const Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(Entry name, Prepare(connection, "name", "text", "?"));
  XENOSCOPE_ASSIGN_OR_RETURN(Entry vcpu, Prepare(connection, "vcpu", "domain, number", "?, ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Entry context, Prepare(connection, "context", "kind, exit, has_both_modes", "?, ?, ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(Entry code,
                             Prepare(connection, "code", "mode, image, function", "?, ?, ?"));
  return SqliteKeyWriter(connection, dictionary, std::move(name), std::move(vcpu),
                         std::move(context), std::move(code));
}

template <typename... Values>
absl::StatusOr<EntryId> SqliteKeyWriter::FindOrAdd(Entry& entry, const Values&... values) {
  (entry.find.Bind(values), ...);
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, entry.find.Step());
  int64_t id = 0;
  if (found) {
    id = entry.find.Integer(0);
    XENOSCOPE_RETURN_IF_ERROR(entry.find.Step().status());
  } else {
    (entry.add.Bind(values), ...);
    XENOSCOPE_RETURN_IF_ERROR(entry.add.Run());
    id = connection_.LastRowId();
  }
  if (id > 0 && id <= kMaxEntryId) return static_cast<EntryId>(id);
  return ExhaustedError("the store has more than {} names of one kind; push to a new file",
                        kMaxEntryId);
}

absl::StatusOr<EntryId> SqliteKeyWriter::IdOf(const std::string& name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  XENOSCOPE_ASSIGN_OR_RETURN(const EntryId id, FindOrAdd(name_, std::string_view(name)));
  names_[name] = id;
  return id;
}

absl::StatusOr<EntryId> SqliteKeyWriter::IdOf(VcpuNumber vcpu) {
  if (vcpu == kAllVcpus) return 0;
  EntryId& id = At(vcpus_, vcpu.value);
  if (id != 0) return id;
  const VcpuKey& key = dictionary_.vcpus[vcpu];
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t domain, IdOf(key.domain));
  XENOSCOPE_ASSIGN_OR_RETURN(id, FindOrAdd(vcpu_, domain, int64_t{key.number}));
  return id;
}

absl::StatusOr<EntryId> SqliteKeyWriter::IdOf(ContextNumber context) {
  if (context == kAllContexts) return 0;
  EntryId& id = At(contexts_, context.value);
  if (id != 0) return id;
  const ContextKey& key = dictionary_.contexts[context];
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t exit, IdOf(key.exit));
  XENOSCOPE_ASSIGN_OR_RETURN(
      id, FindOrAdd(context_, static_cast<int64_t>(key.kind), exit, int64_t{key.has_both_modes}));
  return id;
}

absl::StatusOr<EntryId> SqliteKeyWriter::IdOf(CodeNumber code) {
  EntryId& id = At(codes_, code.value);
  if (id != 0) return id;
  const CodeKey& key = dictionary_.codes[code];
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t image, IdOf(key.image));
  XENOSCOPE_ASSIGN_OR_RETURN(const int64_t function, IdOf(key.function));
  XENOSCOPE_ASSIGN_OR_RETURN(id, FindOrAdd(code_, static_cast<int64_t>(key.mode), image, function));
  return id;
}

SqliteKeyReader::SqliteKeyReader(Dictionary& dictionary, Statement name, Statement vcpu,
                                 Statement context, Statement code)
    : dictionary_(dictionary),
      name_(std::move(name)),
      vcpu_(std::move(vcpu)),
      context_(std::move(context)),
      code_(std::move(code)) {}

absl::StatusOr<SqliteKeyReader> SqliteKeyReader::Make(const Connection& connection,
                                                      Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(Statement name,
                             connection.Prepare("SELECT text FROM name WHERE id = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(Statement vcpu,
                             connection.Prepare("SELECT domain, number FROM vcpu WHERE id = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement context,
      connection.Prepare("SELECT kind, exit, has_both_modes FROM context WHERE id = ?"));
  XENOSCOPE_ASSIGN_OR_RETURN(
      Statement code, connection.Prepare("SELECT mode, image, function FROM code WHERE id = ?"));
  return SqliteKeyReader(dictionary, std::move(name), std::move(vcpu), std::move(context),
                         std::move(code));
}

absl::Status SqliteKeyReader::Read(EntryId id, std::string& name) {
  const auto [known, is_new] = names_.try_emplace(id);
  if (is_new) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, name_.Bind(int64_t{id}).Step());
    // Names are bounded when they are written, but the file may be from anywhere.
    if (found) known->second = BoundedName(name_.Text(0));
    if (!found) return NoEntry("name", id);
    XENOSCOPE_RETURN_IF_ERROR(name_.Step().status());
  }
  name = known->second;
  return absl::OkStatus();
}

absl::Status SqliteKeyReader::ReadName(int64_t id, std::string& name) {
  if (id > 0 && id <= kMaxEntryId) return Read(static_cast<EntryId>(id), name);
  return InvalidError("the store is damaged: there is no name {}", id);
}

absl::Status SqliteKeyReader::Select(EntryId id, VcpuKey& key) {
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, vcpu_.Bind(int64_t{id}).Step());
  if (!found) return NoEntry("vcpu", id);
  const int64_t domain = vcpu_.Integer(0);
  key.number = static_cast<uint32_t>(vcpu_.Integer(1));
  XENOSCOPE_RETURN_IF_ERROR(vcpu_.Step().status());
  return ReadName(domain, key.domain);
}

absl::Status SqliteKeyReader::Select(EntryId id, ContextKey& key) {
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, context_.Bind(int64_t{id}).Step());
  constexpr auto kLastKind = static_cast<int64_t>(correlate::ContextKind::kUnsampledSwitch);
  if (!found || context_.Integer(0) < 0 || context_.Integer(0) > kLastKind) {
    return NoEntry("context", id);
  }
  const int64_t exit = context_.Integer(1);
  key.kind = static_cast<correlate::ContextKind>(context_.Integer(0));
  key.has_both_modes = context_.Integer(2) != 0;
  XENOSCOPE_RETURN_IF_ERROR(context_.Step().status());
  return ReadName(exit, key.exit);
}

absl::Status SqliteKeyReader::Select(EntryId id, CodeKey& key) {
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, code_.Bind(int64_t{id}).Step());
  if (!found || code_.Integer(0) < 0 || code_.Integer(0) > static_cast<int64_t>(Mode::kXen)) {
    return NoEntry("code", id);
  }
  key.mode = static_cast<Mode>(code_.Integer(0));
  const int64_t image = code_.Integer(1);
  const int64_t function = code_.Integer(2);
  XENOSCOPE_RETURN_IF_ERROR(code_.Step().status());
  XENOSCOPE_RETURN_IF_ERROR(ReadName(image, key.image));
  return ReadName(function, key.function);
}

template <typename Key, typename Number>
absl::Status SqliteKeyReader::Remember(EntryId id, KeyTable<Key, Number>& keys, Number& number) {
  Key key;
  XENOSCOPE_RETURN_IF_ERROR(Select(id, key));
  // No entry has a number beyond the bound: what the file says is no reason to use memory.
  if (id > kMaxEntryId) return InvalidError("the store is damaged: an entry has number {}", id);
  std::vector<Number>& known = Known<Number>();
  if (id >= known.size()) known.resize(id + 1, Number{kUnknown});
  number = known[id] = keys.Intern(key);
  return absl::OkStatus();
}

absl::Status SqliteKeyReader::Find(EntryId id, VcpuNumber& vcpu) {
  return Remember(id, dictionary_.vcpus, vcpu);
}

absl::Status SqliteKeyReader::Find(EntryId id, ContextNumber& context) {
  return Remember(id, dictionary_.contexts, context);
}

absl::Status SqliteKeyReader::Find(EntryId id, CodeNumber& code) {
  return Remember(id, dictionary_.codes, code);
}

}  // namespace xenoscope::store
