// changes.jsonl: what happened to domains while they were recorded, one line of JSON each, as
// docs/recording-format.md describes it. It is only appended to, so that a change costs its own
// line and whatever ends the writer leaves those before.
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
  uint64_t written_ = 0;  // bytes
};

struct ReadChanges {
  std::vector<DomainChange> changes;
  uint64_t damaged = 0;  // lines that are no change; the last one too, when it was cut off
};

ReadChanges ParseChanges(std::string_view text);

}  // namespace xenoscope::recording
