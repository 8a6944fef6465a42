// Conversion of RecordingInfo to the text of recording.json and back, and of the lines of
// changes.jsonl.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "recording/info.h"

namespace xenoscope::recording {

// Returns indented JSON with keys in a fixed order and a newline at the end, without info.changes,
// which are in a file of their own.
std::string ToJson(const RecordingInfo& info);

// Parses recording.json. Missing keys keep their defaults and unknown keys are passed over, so that
// every minor version can be read. Errors (InvalidArgument): not JSON (with the byte), a value of
// the wrong type or out of range (with its key), a newer major version.
absl::StatusOr<RecordingInfo> FromJson(std::string_view text);

// Returns one line of JSON, without a newline.
std::string ToJsonLine(const DomainChange& change);
// Parses such a line. Errors: as those of FromJson.
absl::StatusOr<DomainChange> ChangeFromJson(std::string_view line);

}  // namespace xenoscope::recording
