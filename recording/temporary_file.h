// A file without a name, for what a reader makes of a recording and need not keep in memory.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/file.h"

namespace xenoscope::recording {

// The file; it ends with this object.
class TemporaryFile {
 public:
  // Makes a file in $TMPDIR, else /tmp; in memory when neither can be written. Errors: those of the
  // system.
  static absl::StatusOr<TemporaryFile> Create();

  // Appends the bytes. Error (ResourceExhausted): there is no room.
  absl::Status Write(Bytes bytes);

  // Returns the path at which this process can open the file.
  [[nodiscard]] std::string path() const;

 private:
  explicit TemporaryFile(File file) : file_(std::move(file)) {}

  File file_;
};

}  // namespace xenoscope::recording
