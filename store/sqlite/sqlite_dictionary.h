// The tables of names and keys in a SQLite file, and how their numbers there belong to those of a
// dictionary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "store/packed_keys.h"
#include "store/slice.h"
#include "store/sqlite/connection.h"

namespace xenoscope::store {

// Adds keys of a dictionary to the file's tables, where they are not there yet.
class SqliteKeyWriter final : public KeyWriter {
 public:
  // Both outlive the writer.
  static absl::StatusOr<SqliteKeyWriter> Make(const Connection& connection,
                                              const Dictionary& dictionary);

  absl::StatusOr<EntryId> IdOf(const std::string& name) override;
  absl::StatusOr<EntryId> IdOf(VcpuNumber vcpu) override;
  absl::StatusOr<EntryId> IdOf(ContextNumber context) override;
  absl::StatusOr<EntryId> IdOf(CodeNumber code) override;

 private:
  // Finds or adds a row of a table by its columns.
  struct Entry {
    Statement find;
    Statement add;
  };
  SqliteKeyWriter(const Connection& connection, const Dictionary& dictionary, Entry name,
                  Entry vcpu, Entry context, Entry code);
  static absl::StatusOr<Entry> Prepare(const Connection& connection, std::string_view table,
                                       std::string_view columns, std::string_view places);
  template <typename... Values>
  absl::StatusOr<EntryId> FindOrAdd(Entry& entry, const Values&... values);

  const Connection& connection_;
  const Dictionary& dictionary_;
  Entry name_;
  Entry vcpu_;
  Entry context_;
  Entry code_;
  absl::flat_hash_map<std::string, EntryId> names_;
  std::vector<EntryId> vcpus_;  // by number; 0: not looked up yet
  std::vector<EntryId> contexts_;
  std::vector<EntryId> codes_;
};

// Reads keys from the file's tables.
class SqliteKeyReader final : public KeyReader {
 public:
  // Both outlive the reader.
  static absl::StatusOr<SqliteKeyReader> Make(const Connection& connection, Dictionary& dictionary);

  using KeyReader::Read;
  absl::Status Read(EntryId id, std::string& name) override;
  // The same, of a number that may be out of range.
  absl::Status ReadName(int64_t id, std::string& name);

 private:
  SqliteKeyReader(Dictionary& dictionary, Statement name, Statement vcpu, Statement context,
                  Statement code);

  Dictionary& dictionary_;
  Statement name_;
  Statement vcpu_;
  Statement context_;
  Statement code_;
  absl::Status Find(EntryId id, VcpuNumber& vcpu) override;
  absl::Status Find(EntryId id, ContextNumber& context) override;
  absl::Status Find(EntryId id, CodeNumber& code) override;
  absl::Status Select(EntryId id, VcpuKey& key);
  absl::Status Select(EntryId id, ContextKey& key);
  absl::Status Select(EntryId id, CodeKey& key);
  // Selects an entry, and remembers its number in the dictionary.
  template <typename Key, typename Number>
  absl::Status Remember(EntryId id, KeyTable<Key, Number>& keys, Number& number);

  absl::flat_hash_map<EntryId, std::string> names_;
};

}  // namespace xenoscope::store
