#include "recording/changes.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "base/bytes.h"
#include "recording/info_json.h"
#include "recording/layout.h"

namespace xenoscope::recording {

absl::StatusOr<ChangeWriter> ChangeWriter::Create(const Directory& recording) {
  absl::StatusOr<File> file = recording.Create(std::string(kChangesFile));
  if (!file.ok()) return file.status();
  return ChangeWriter(*std::move(file));
}

absl::Status ChangeWriter::Append(std::span<const DomainChange> changes) {
  std::string lines;
  for (const DomainChange& change : changes) {
    lines += ToJsonLine(change);
    lines += '\n';
  }
  if (const int error = WriteAll(file_.fd(), AsBytes(lines)); error != 0) {
    // A part that was written must not become the beginning of a later line.
    if (ftruncate(file_.fd(), static_cast<off_t>(written_)) == 0) lseek(file_.fd(), 0, SEEK_END);
    return WriteError(error, "cannot write changes.jsonl");
  }
  written_ += lines.size();
  return absl::OkStatus();
}

ReadChanges ParseChanges(std::string_view text) {
  ReadChanges read;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool is_cut = end == std::string_view::npos;
    absl::StatusOr<DomainChange> change = ChangeFromJson(text.substr(0, end));
    if (is_cut || !change.ok()) {
      ++read.damaged;
    } else {
      read.changes.push_back(*change);
    }
    text.remove_prefix(is_cut ? text.size() : end + 1);
  }
  return read;
}

}  // namespace xenoscope::recording
