#include "base/error.h"

namespace xenoscope {

absl::Status ErrnoStatus(int error, std::string_view what) {
  return absl::ErrnoToStatus(error, {what.data(), what.size()});
}

std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

absl::Status InContext(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", where, Message(status))};
}

}  // namespace xenoscope
