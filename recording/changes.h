// changes.jsonl: the changes of domains during the recording, one line of JSON each
// (docs/recording-format.md). Lines are only appended: a change costs one line, and the lines
// before it survive any end of the writer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/directory.h"
#include "base/file.h"
#include "recording/info.h"

namespace xenoscope::recording {

// The writer of changes.jsonl.
class ChangeWriter {
 public:
  // Makes the file in the recording's directory, where it must not exist.
  static absl::StatusOr<ChangeWriter> Create(const Directory& recording);

  // Adds the changes in one write. After an error (ResourceExhausted: the disk is full) none of
  // them is in the file.
  absl::Status Append(std::span<const DomainChange> changes);

 private:
  explicit ChangeWriter(File file) : file_(std::move(file)) {}

  File file_;
  uint64_t written_ = 0;  // size of the file, in bytes
};

// What a reader finds in changes.jsonl.
struct ReadChanges {
  std::vector<DomainChange> changes;
  uint64_t damaged = 0;  // lines that are not a change; a last line that was cut off is one of them
};

ReadChanges ParseChanges(std::string_view text);

}  // namespace xenoscope::recording
