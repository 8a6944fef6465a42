// A file of a recording, plain or compressed: "trace.xentrace" is also found as
// "trace.xentrace.zst".
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace xenoscope::recording {

// Where the plain bytes of a piece can be opened, for as long as this lives.
class Piece {
 public:
  // The file at `path` itself, else `path`.zst decompressed into a temporary file that has no name
  // (in $TMPDIR, else /tmp; in memory when neither can be written) and goes with the Piece. A
  // compressed file that is cut off gives what it holds up to there.
  // Errors: NotFound when there is neither; InvalidArgument: not zstd data.
  static absl::StatusOr<Piece> Open(const std::string& path);

  Piece(Piece&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  Piece& operator=(Piece&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece();

  // What to open to read the plain bytes.
  const std::string& path() const { return path_; }

 private:
  Piece(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

}  // namespace xenoscope::recording
