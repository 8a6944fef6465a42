#include "store/sqlite/sqlite_sums.h"

#include "base/error.h"

namespace xenoscope::store {

absl::StatusOr<SqliteSums> SqliteSums::Make(const Connection& connection) {
  XENOSCOPE_ASSIGN_OR_RETURN(Statement select,
                             connection.Prepare("SELECT packed FROM sums WHERE slice = ?"));
  return SqliteSums(std::move(select));
}

absl::Status SqliteSums::Read(int64_t slice, KeyReader& keys, const WantedSums& wanted,
                              SliceSums& sums) {
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, select_.Bind(slice).Step());
  if (!found) return InvalidError("the store is damaged: slice {} has no sums", slice);
  absl::Status status = unpacker_.Read(select_.Blob(0), keys, wanted, sums);
  XENOSCOPE_RETURN_IF_ERROR(select_.Step().status());
  return status;
}

}  // namespace xenoscope::store
