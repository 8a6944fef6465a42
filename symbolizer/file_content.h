// A file of symbols as bytes: mapped, or decompressed when its name ends with .zst.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mapped_file.h"

namespace xenoscope::symbolizer {

class FileContent {
 public:
  // Errors name the path: not found, not a regular file, damaged zstd, more than kLargest bytes
  // after decompression.
  static absl::StatusOr<FileContent> Open(const std::string& path);

  // Of what is in memory already.
  static FileContent Of(std::string content) {
    FileContent file;
    file.decompressed_ = std::move(content);
    return file;
  }

  // Of the file on disk; zeroes: it is none.
  const FileIdentity& identity() const { return identity_; }

  Bytes bytes() const { return decompressed_.empty() ? mapped_.bytes() : AsBytes(decompressed_); }

  // A kernel with all its debug information is half of that.
  static constexpr uint64_t kLargest = uint64_t{2} << 30;

 private:
  MappedFile mapped_;
  std::string decompressed_;
  FileIdentity identity_;
};

// `bytes` without their zstd compression; ExhaustedError beyond `largest` bytes.
absl::StatusOr<std::string> DecompressZstd(Bytes bytes, uint64_t largest);

}  // namespace xenoscope::symbolizer
