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
#include "store/slice.h"
#include "store/sqlite/connection.h"

namespace xenoscope::store {

// The number of an entry in a table of the file. They begin at 1; 0 is for kAllVcpus and
// kAllContexts.
using EntryId = uint32_t;
inline constexpr EntryId kMaxEntryId = (EntryId{1} << 26) - 1;

// Writes keys of a dictionary.
class KeyWriter {
 public:
  // Both outlive the writer.
  static absl::StatusOr<KeyWriter> Make(const Connection& connection, const Dictionary& dictionary);

  // Return the number in the file, of a new entry where there is none yet. Errors:
  // ResourceExhausted if there are more than kMaxEntryId.
  absl::StatusOr<EntryId> IdOf(const std::string& name);
  absl::StatusOr<EntryId> IdOf(VcpuNumber vcpu);
  absl::StatusOr<EntryId> IdOf(ContextNumber context);
  absl::StatusOr<EntryId> IdOf(CodeNumber code);

 private:
  // Finds or adds a row of a table by its columns.
  struct Entry {
    Statement find;
    Statement add;
  };
  KeyWriter(const Connection& connection, const Dictionary& dictionary, Entry name, Entry vcpu,
            Entry context, Entry code);
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

// Reads keys into a dictionary.
class KeyReader {
 public:
  // Both outlive the reader.
  static absl::StatusOr<KeyReader> Make(const Connection& connection, Dictionary& dictionary);

  // Read the entry with this number in the file. Errors (InvalidArgument): there is none, or it is
  // not as it must be.
  absl::Status Read(EntryId id, std::string& name);
  absl::Status Read(EntryId id, VcpuNumber& vcpu);
  absl::Status Read(EntryId id, ContextNumber& context);
  absl::Status Read(EntryId id, CodeNumber& code);
  // The same, of a number that may be out of range.
  absl::Status ReadName(int64_t id, std::string& name);

 private:
  KeyReader(Dictionary& dictionary, Statement name, Statement vcpu, Statement context,
            Statement code);

  Dictionary& dictionary_;
  Statement name_;
  Statement vcpu_;
  Statement context_;
  Statement code_;
  absl::Status Find(EntryId id, VcpuKey& key);
  absl::Status Find(EntryId id, ContextKey& key);
  absl::Status Find(EntryId id, CodeKey& key);
  // Reads an entry through the numbers that are known already.
  template <typename Key, typename Number>
  absl::Status Read(EntryId id, KeyTable<Key, Number>& keys, std::vector<Number>& known,
                    Number& number);

  absl::flat_hash_map<EntryId, std::string> names_;
  std::vector<VcpuNumber> vcpus_;  // by number in the file; kUnknown: not looked up yet
  std::vector<ContextNumber> contexts_;
  std::vector<CodeNumber> codes_;
};

}  // namespace xenoscope::store
