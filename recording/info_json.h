// recording.json: RecordingInfo as text and back, and the lines of changes.jsonl.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "recording/info.h"

namespace xenoscope::recording {

// Indented, keys in a fixed order, a newline at the end. Without info.changes, which are in a file
// of their own.
std::string ToJson(const RecordingInfo& info);

// Keys that are missing keep their defaults and keys that are not known are passed over, so that
// every minor version can be read. Errors (InvalidArgument): not JSON (with the byte), a value of
// the wrong type or out of range (with its key), a newer major version.
absl::StatusOr<RecordingInfo> FromJson(std::string_view text);

// One line, without a newline.
std::string ToJsonLine(const DomainChange& change);
// Errors: as above.
absl::StatusOr<DomainChange> ChangeFromJson(std::string_view line);

}  // namespace xenoscope::recording
