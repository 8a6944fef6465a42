#include "base/error.h"

#include "absl/strings/str_cat.h"

namespace xenoscope {

absl::Status ErrnoStatus(int error, std::string_view what) {
  return absl::ErrnoToStatus(error, what);
}

absl::Status InContext(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat(where, ": ", status.message())};
}

}  // namespace xenoscope
