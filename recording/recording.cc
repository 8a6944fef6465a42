#include "recording/recording.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "recording/changes.h"
#include "recording/info_json.h"
#include "recording/layout.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

std::string Join(const std::string& directory, std::string_view name) {
  return (fs::path(directory) / name).string();
}

// Returns whether a path from recording.json leads to a place inside the recording.
bool StaysInside(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

std::vector<std::string> Warnings(const RecordingInfo& info) {
  std::vector<std::string> warnings;
  if (info.state == State::kRecording) {
    warnings.emplace_back(
        "the recording was cut off: it has no loss counters, and its last moments are missing");
  }
  for (const SourceInfo& source : info.sources) {
    warnings.insert(warnings.end(), source.problems.begin(), source.problems.end());
  }
  for (const StreamInfo& stream : info.streams) {
    if (!stream.Balanced()) {
      warnings.push_back(fmt::format(
          "{}: {} entries were drained but Xen logged {}: samples were lost or counted twice",
          ToString(stream.vcpu), stream.drained, stream.logged.Logged()));
    }
  }
  return warnings;
}

}  // namespace

bool Recording::IsRecording(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

absl::StatusOr<Recording> Recording::Open(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return NotFoundError("{}: no such recording; `xenoscope record -o {}` makes one", path, path);
  }
  std::error_code denied;
  if (!fs::is_directory(path, ignored) || !fs::exists(Join(path, kInfoFile), denied)) {
    if (denied) {
      return ErrnoError(denied.value(),
                        "cannot read {}: only its owner may; if root made it, use sudo", path);
    }
    return InvalidError("{} is not a recording: it has no {}", path, kInfoFile);
  }
  const std::string info_path = Join(path, kInfoFile);
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(info_path));
  absl::StatusOr<RecordingInfo> info = FromJson(AsText(file.bytes()));
  if (!info.ok()) return InContext(info.status(), info_path);
  Recording recording(path, *std::move(info));
  recording.warnings_ = Warnings(recording.info_);
  if (const absl::Status read = recording.ReadChangesFile(); !read.ok()) {
    recording.warnings_.emplace_back(Message(read));
  }
  return recording;
}

// Recordings before format 1.7 have no such file, nor have those in which nothing changed.
absl::Status Recording::ReadChangesFile() {
  const std::string path = Join(path_, kChangesFile);
  const absl::StatusOr<PlainFile> plain_file = PlainFile::Open(path);
  if (absl::IsNotFound(plain_file.status())) return absl::OkStatus();
  if (!plain_file.ok()) return plain_file.status();
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file,
                             MappedFile::Open(plain_file->path(), plain_file->name()));
  ReadChanges read = ParseChanges(AsText(file.bytes()));
  std::ranges::move(read.changes, std::back_inserter(info_.changes));
  if (read.damaged > 0) {
    warnings_.push_back(fmt::format("{}: {} lines are damaged or cut off, and left out",
                                    kChangesFile, read.damaged));
  }
  return absl::OkStatus();
}

Clock Recording::clock() const {
  if (info_.host.clock_hz == 0) return {};
  return {info_.host.clock_hz, ClockSource::kRecorded};
}

absl::StatusOr<PlainFile> Recording::OpenTrace() const {
  return PlainFile::Open(Join(path_, kTraceFile));
}

absl::StatusOr<SampleStream> Recording::OpenSamples(size_t source) const {
  if (source >= info_.sources.size()) {
    return NotFoundError("{}: there is no sample source {}", path_, source);
  }
  const std::string relative = SamplesPath(info_.sources[source].name);
  if (!StaysInside(relative)) {
    return InvalidError("{}: \"{}\" is not the name of a source", path_,
                        info_.sources[source].name);
  }
  std::optional<PlainFile> opened;
  const auto replaced = replaced_.find(source);
  if (replaced == replaced_.end()) {
    XENOSCOPE_ASSIGN_OR_RETURN(opened, PlainFile::Open(Join(path_, relative)));
  }
  const PlainFile& plain_file = opened ? *opened : replaced->second;
  XENOSCOPE_ASSIGN_OR_RETURN(MappedFile file,
                             MappedFile::Open(plain_file.path(), plain_file.name()));
  absl::StatusOr<SampleReader> reader = SampleReader::Open(file.bytes(), info_.events.size());
  if (!reader.ok()) return InContext(reader.status(), Join(path_, relative));
  return SampleStream{std::move(opened), std::move(file), *std::move(reader)};
}

void Recording::ReplaceSamples(size_t source, TemporaryFile made) {
  replaced_.insert_or_assign(
      source, PlainFile::OfTemporary(std::move(made), SamplesPath(info_.sources[source].name)));
}

absl::StatusOr<PlainFile> Recording::OpenSymbols(const SymbolFile& file) const {
  if (!StaysInside(file.path)) {
    return InvalidError("{}: \"{}\" leads out of the recording", path_, file.path);
  }
  return PlainFile::Open(Join(path_, file.path));
}

}  // namespace xenoscope::recording
