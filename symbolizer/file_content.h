// A file of symbols as bytes: mapped, or decompressed when its name ends with .zst.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/decompression_limit.h"
#include "base/mapped_file.h"

namespace xenoscope::symbolizer {

class FileContent {
 public:
  // `name` stands for the path in messages; empty: the path itself. Errors have it: not found, not
  // a regular file, damaged zstd, one that grows beyond its limit (base/decompression_limit.h).
  static absl::StatusOr<FileContent> Open(const std::string& path, std::string name = {});

  // Of what is in memory already.
  static FileContent FromString(std::string content) {
    FileContent file;
    file.decompressed_ = std::move(content);
    return file;
  }

  // Of the file on disk; zeroes: it is none.
  const FileIdentity& identity() const { return identity_; }

  Bytes bytes() const { return decompressed_.empty() ? mapped_.bytes() : AsBytes(decompressed_); }

 private:
  MappedFile mapped_;
  std::string decompressed_;
  DecompressionBudget extra_growth_;  // of decompressed_
  FileIdentity identity_;
};

// `bytes` without their zstd compression. Memory: two and a half times the result. Errors:
// ExhaustedError beyond `largest` bytes; InvalidArgument: damaged.
absl::StatusOr<std::string> DecompressZstd(Bytes bytes, uint64_t largest);

}  // namespace xenoscope::symbolizer
