// The sums of a slice as one value of a SQLite file. Rows of their own would take four times the
// space, and reading them ten times the time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/slice.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_dictionary.h"

namespace xenoscope::store {

// Returns the sums, whose keys are the writer's. Sums of tables that are not kExact are rounded to
// 24 significant bits. O(sums log(sums)).
absl::StatusOr<std::string> Pack(const SliceSums& sums, KeyWriter& keys);

// Reads what Pack has returned into `sums`, whose memory is used again. Errors (InvalidArgument):
// the bytes are something else. O(sums).
absl::Status Unpack(Bytes packed, KeyReader& keys, SliceSums& sums);

// Reads the sums of slices of a file.
class PackedReader {
 public:
  static absl::StatusOr<PackedReader> Make(const Connection& connection);
  // Reads those of the slice with this number. Errors (InvalidArgument): it has none, or as Unpack.
  absl::Status Read(int64_t slice, KeyReader& keys, SliceSums& sums);

 private:
  explicit PackedReader(Statement select) : select_(std::move(select)) {}
  Statement select_;
};

}  // namespace xenoscope::store
