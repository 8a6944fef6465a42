// A temporary directory that is removed with what is in it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace xenoscope::cli {

class ScratchDirectory {
 public:
  // Makes a directory "xenoscope-COMMAND.PID.XXXXXX" below $TMPDIR (default: /tmp) that only its
  // owner can read. Removes those of the same command that killed processes left. Errors: those of
  // mkdtemp.
  static absl::StatusOr<ScratchDirectory> Make(std::string_view command);

  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchDirectory& operator=(ScratchDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();

  // Empty once it has been moved from.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace xenoscope::cli
