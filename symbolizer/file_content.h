// A file of symbols as bytes: mapped, or decompressed when its name ends with .zst, .xz or .gz, as
// those of kernels' modules do.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/decompression_limit.h"
#include "base/mapped_file.h"

namespace xenoscope::symbolizer {

class FileContent {
 public:
  // Opens the file at `path`, whose name is `name` (empty: `path`). Errors: not found, not a
  // regular file, damaged, or decompressed beyond its limit (base/decompression_limit.h).
  static absl::StatusOr<FileContent> Open(const std::string& path, std::string name = {});

  // Returns a file with this content in memory.
  static FileContent FromString(std::string content) {
    FileContent file;
    file.decompressed_ = std::move(content);
    return file;
  }

  // Returns the identity of the file on disk; all zeros: there is none.
  [[nodiscard]] const FileIdentity& identity() const { return identity_; }

  [[nodiscard]] Bytes bytes() const {
    return decompressed_.empty() ? mapped_.bytes() : AsBytes(decompressed_);
  }

 private:
  MappedFile mapped_;
  std::string decompressed_;
  DecompressionBudget extra_growth_;  // the budget that decompressed_ holds
  FileIdentity identity_;
};

// Returns the name without the ending that says how the file is compressed, if it has one.
std::string_view WithoutCompression(std::string_view name);

// Decompresses `bytes` (zstd, xz). Needs two and a half times the result's memory. Errors:
// ExhaustedError beyond `largest` bytes; InvalidArgument: damaged.
absl::StatusOr<std::string> DecompressZstd(Bytes bytes, uint64_t largest);
absl::StatusOr<std::string> DecompressXz(Bytes bytes, uint64_t largest);

}  // namespace xenoscope::symbolizer
