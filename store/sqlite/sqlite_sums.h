// The packed sums of slices in a SQLite file.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/packed_sums.h"
#include "store/sqlite/connection.h"

namespace xenoscope::store {

class SqliteSums {
 public:
  static absl::StatusOr<SqliteSums> Make(const Connection& connection);
  // Reads those of the slice with this number, which are wanted. Errors (InvalidArgument): it has
  // none, or as Unpacker::Read.
  absl::Status Read(int64_t slice, KeyReader& keys, const WantedSums& wanted, SliceSums& sums);

 private:
  explicit SqliteSums(Statement select) : select_(std::move(select)) {}
  Statement select_;
  Unpacker unpacker_;
};

}  // namespace xenoscope::store
