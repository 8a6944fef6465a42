// A file of a recording, plain or compressed: "trace.xentrace" is also looked up as
// "trace.xentrace.zst".
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/decompression_limit.h"
#include "recording/temporary_file.h"

namespace xenoscope::recording {

// The plain bytes of a file that may be compressed; they can be opened as long as this object
// lives.
class PlainFile {
 public:
  // Opens `path` itself, else decompresses `path`.zst into a temporary file without a name (in
  // $TMPDIR, else /tmp; in memory when neither can be written), which ends with the PlainFile. A
  // compressed file that is cut off gives what it holds up to there.
  // Errors: NotFound when there is neither; InvalidArgument: not zstd data; ResourceExhausted: it
  // grows beyond its limit (base/decompression_limit.h), or there is no room.
  static absl::StatusOr<PlainFile> Open(const std::string& path);
  // Decompresses the file at `path`, whatever its name. Errors: as above.
  static absl::StatusOr<PlainFile> Decompress(const std::string& path);
  // Returns whether the file can be read and begins as zstd's frames do (RFC 8878, section 3.1.1).
  static bool IsCompressed(const std::string& path);
  // Returns a file with the bytes of `made`; `name` is for messages.
  static PlainFile OfTemporary(TemporaryFile made, std::string name);

  // Returns the path to open for the plain bytes.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Returns the name for messages: the path of the file that was found.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  PlainFile(std::string path, std::string name, std::optional<TemporaryFile> plain,
            DecompressionBudget extra_growth)
      : path_(std::move(path)),
        name_(std::move(name)),
        plain_(std::move(plain)),
        extra_growth_(std::move(extra_growth)) {}

  std::string path_;
  std::string name_;
  std::optional<TemporaryFile> plain_;  // the decompressed bytes of a compressed file
  DecompressionBudget extra_growth_;
};

}  // namespace xenoscope::recording
