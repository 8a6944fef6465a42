// A file of a recording, plain or compressed: "trace.xentrace" is also found as
// "trace.xentrace.zst".
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/decompression_limit.h"
#include "base/file.h"

namespace xenoscope::recording {

// Where the plain bytes of a file, compressed or not, can be opened, for as long as this lives.
class PlainFile {
 public:
  // The file at `path` itself, else `path`.zst decompressed into a temporary file that has no name
  // (in $TMPDIR, else /tmp; in memory when neither can be written) and goes with the PlainFile. A
  // compressed file that is cut off gives what it holds up to there.
  // Errors: NotFound when there is neither; InvalidArgument: not zstd data; ResourceExhausted: it
  // grows beyond its limit (base/decompression_limit.h), or there is no room.
  static absl::StatusOr<PlainFile> Open(const std::string& path);
  // The same of a file that is compressed, whatever its name. Errors: as above.
  static absl::StatusOr<PlainFile> Decompress(const std::string& path);
  // Whether it can be read and begins as zstd's frames do (RFC 8878, section 3.1.1).
  static bool IsCompressed(const std::string& path);

  // What to open to read the plain bytes.
  const std::string& path() const { return path_; }
  // What it is called in messages: the path of the file that was found.
  const std::string& name() const { return name_; }

 private:
  PlainFile(std::string path, std::string name, File plain, DecompressionBudget extra_growth)
      : path_(std::move(path)),
        name_(std::move(name)),
        plain_(std::move(plain)),
        extra_growth_(std::move(extra_growth)) {}

  std::string path_;
  std::string name_;
  File plain_;  // of a compressed one
  DecompressionBudget extra_growth_;
};

}  // namespace xenoscope::recording
