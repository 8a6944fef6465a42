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

// Writes keys of a dictionary. Numbers in the file begin at 1; 0 is for kAllVcpus and kAllContexts.
class KeyWriter {
 public:
  // Both outlive the writer.
  static absl::StatusOr<KeyWriter> Make(const Connection& connection, const Dictionary& dictionary);

  // Return the number in the file, of a new entry where there is none yet.
  absl::StatusOr<int64_t> IdOf(const std::string& name);
  absl::StatusOr<int64_t> IdOf(VcpuNumber vcpu);
  absl::StatusOr<int64_t> IdOf(ContextNumber context);
  absl::StatusOr<int64_t> IdOf(CodeNumber code);

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
  absl::StatusOr<int64_t> FindOrAdd(Entry& entry, const Values&... values);

  const Connection& connection_;
  const Dictionary& dictionary_;
  Entry name_;
  Entry vcpu_;
  Entry context_;
  Entry code_;
  absl::flat_hash_map<std::string, int64_t> names_;
  std::vector<int64_t> vcpus_;  // by number; 0: not looked up yet
  std::vector<int64_t> contexts_;
  std::vector<int64_t> codes_;
};

// Reads keys into a dictionary.
class KeyReader {
 public:
  // Both outlive the reader.
  static absl::StatusOr<KeyReader> Make(const Connection& connection, Dictionary& dictionary);

  // Read the entry with this number in the file. Errors (InvalidArgument): there is none, or it is
  // not as it must be.
  absl::Status Read(int64_t id, std::string& name);
  absl::Status Read(int64_t id, VcpuNumber& vcpu);
  absl::Status Read(int64_t id, ContextNumber& context);
  absl::Status Read(int64_t id, CodeNumber& code);

 private:
  KeyReader(Dictionary& dictionary, Statement name, Statement vcpu, Statement context,
            Statement code);

  Dictionary& dictionary_;
  Statement name_;
  Statement vcpu_;
  Statement context_;
  Statement code_;
  absl::flat_hash_map<int64_t, std::string> names_;  // by number in the file
  absl::flat_hash_map<int64_t, VcpuNumber> vcpus_;
  absl::flat_hash_map<int64_t, ContextNumber> contexts_;
  absl::flat_hash_map<int64_t, CodeNumber> codes_;
};

}  // namespace xenoscope::store
