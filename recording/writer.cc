#include "recording/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "recording/info_json.h"
#include "recording/layout.h"
#include "recording/tree_sync.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

constexpr off_t kReserve = off_t{256} * 1024;

// Copies to the end of the file, as sizes in /proc are not right.
absl::Status CopyFile(const std::string& from, int to, const std::string& to_path) {
  const File in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in.is_open()) return ErrnoError(errno, "cannot read {}", from);
  std::array<std::byte, 1 << 16> buffer{};
  while (true) {
    const ssize_t n = read(in.fd(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "cannot read {}", from);
    if (n == 0) return absl::OkStatus();
    const int error = WriteAll(to, Bytes(buffer).first(static_cast<size_t>(n)));
    if (error != 0) return WriteError(error, fmt::format("cannot write {}", to_path));
  }
}

std::string OldName(const std::string& name) { return name + ".old"; }

enum class Content { kRecording, kLeavings, kOther };

// Returns the content of a directory with a recording's name. kLeavings are the remains of a
// recording that ended before its first recording.json, which cannot be read.
Content ContentOf(const Directory& directory) {
  constexpr std::array<std::string_view, 6> kFirst = {kReserveFile,      kTraceFile,
                                                      kSamplesDirectory, kSymbolsDirectory,
                                                      kGuestsDirectory,  kNewInfoFile};
  if (directory.Has(std::string(kInfoFile))) return Content::kRecording;
  const auto names = directory.List();
  if (!names.ok()) return Content::kOther;
  const bool all_known = std::ranges::all_of(*names, [&](const std::string& name) {
    return std::ranges::find(kFirst, name) != kFirst.end();
  });
  const bool is_left = names->empty() || (all_known && directory.Has(std::string(kReserveFile)));
  return is_left ? Content::kLeavings : Content::kOther;
}

// Returns the content of the directory `name` in `parent`; a file or a symbolic link is kOther.
Content ContentOf(const Directory& parent, const std::string& name) {
  const auto directory = parent.OpenDirectory(name);
  return directory.ok() ? ContentOf(*directory) : Content::kOther;
}

// Moves a recording away. Returns whether there was one.
absl::StatusOr<bool> MoveAway(const Directory& parent, const std::string& name) {
  if (!parent.Has(name)) return false;
  const std::string path = fmt::format("{}/{}", parent.path(), name);
  const std::string old = OldName(name);
  switch (ContentOf(parent, name)) {
    case Content::kOther:
      return PreconditionError("{} exists and is not a recording: choose another name with -o",
                               path);
    case Content::kLeavings:
      XENOSCOPE_RETURN_IF_ERROR(parent.RemoveAll(name));
      return false;
    case Content::kRecording:
      break;
  }
  if (parent.Has(old)) {
    if (ContentOf(parent, old) == Content::kOther) {
      return PreconditionError("{}.old is in the way and is not a recording: move it", path);
    }
    XENOSCOPE_RETURN_IF_ERROR(parent.RemoveAll(old));
  }
  XENOSCOPE_RETURN_IF_ERROR(parent.Rename(name, old));
  return true;
}

std::string_view NameOf(SymbolFile::Kind kind) {
  switch (kind) {
    case SymbolFile::Kind::kXensyms:
      return "xensyms";
    case SymbolFile::Kind::kKallsyms:
      return "kallsyms";
    case SymbolFile::Kind::kModules:
      return "modules";
    case SymbolFile::Kind::kVmlinux:
      return "vmlinux";
    case SymbolFile::Kind::kImage:
      return "image";
    case SymbolFile::Kind::kVdso:
      return "vdso";
    case SymbolFile::Kind::kPerfMaps:
      return "perf-maps";
    case SymbolFile::Kind::kLivepatches:
      return "livepatches";
    case SymbolFile::Kind::kBootTrace:
      return "boot-trace";
  }
  return "symbols";
}

// Returns a name that no file in the directory has: two images of the same name are both kept.
std::string FreeName(const Directory& directory, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; directory.Has(name); ++i) name = fmt::format("{}.{}", wanted, i);
  return name;
}

}  // namespace

absl::StatusOr<Writer> Writer::Create(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(auto above, Directory::OpenParent(path));
  auto& [parent, name] = above;
  XENOSCOPE_ASSIGN_OR_RETURN(const bool moved, MoveAway(parent, name));
  absl::StatusOr<Directory> made = parent.Make(name);
  if (!made.ok()) {
    if (moved) parent.Rename(OldName(name), name).IgnoreError();
    return made.status();
  }
  Writer writer(std::move(parent), name, *std::move(made), moved);
  absl::Status status = writer.MakeDirectories();
  if (status.ok()) status = writer.parent_.Sync();
  if (!status.ok()) {
    writer.Abandon();
    return status;
  }
  return writer;
}

absl::Status Writer::MakeDirectories() const {
  XENOSCOPE_ASSIGN_OR_RETURN(const File reserve, directory_.Create(std::string(kReserveFile)));
  // A recording on a file system that cannot reserve space still works.
  const int failed = posix_fallocate(reserve.fd(), 0, kReserve);
  if (failed == ENOSPC || failed == EDQUOT) {
    return WriteError(failed, fmt::format("cannot write {}", path()));
  }
  for (const std::string_view name : {kSamplesDirectory, kSymbolsDirectory, kGuestsDirectory}) {
    XENOSCOPE_RETURN_IF_ERROR(directory_.Make(std::string(name)).status());
  }
  return absl::OkStatus();
}

absl::Status Writer::AppendChanges(std::span<const DomainChange> changes) {
  if (changes.empty()) return absl::OkStatus();
  if (!changes_) {
    XENOSCOPE_ASSIGN_OR_RETURN(changes_, ChangeWriter::Create(directory_));
  }
  return changes_->Append(changes);
}

void Writer::Abandon() const {
  const bool removed = parent_.RemoveAll(name_).ok();
  if (moved_ && removed) parent_.Rename(OldName(name_), name_).IgnoreError();
}

absl::StatusOr<File> Writer::CreateTrace() const {
  return directory_.Create(std::string(kTraceFile));
}

std::string Writer::TracePath() const { return fmt::format("{}/{}", path(), kTraceFile); }

absl::StatusOr<SampleWriter> Writer::CreateSamples(std::string_view source) const {
  const std::string name = SamplesPath(source);
  XENOSCOPE_ASSIGN_OR_RETURN(File file, directory_.Create(name));
  return SampleWriter::Create(std::move(file), fmt::format("{}/{}", path(), name));
}

std::string Writer::PathFor(SymbolFile::Kind kind, DomainId domain, const std::string& leaf) const {
  if (kind == SymbolFile::Kind::kXensyms) {
    return fmt::format("{}/{}", kSymbolsDirectory, NameOf(kind));
  }
  if (kind == SymbolFile::Kind::kLivepatches) {
    return fmt::format("{}/{}/list", kSymbolsDirectory, NameOf(kind));
  }
  const bool image = kind == SymbolFile::Kind::kImage;
  if (domain == kDom0 && !image) return fmt::format("{}/dom0.{}", kSymbolsDirectory, NameOf(kind));
  return FreeName(directory_,
                  fmt::format("{}/{}", GuestDirectory(domain), image ? leaf : NameOf(kind)));
}

absl::StatusOr<SymbolFile> Writer::AddSymbols(SymbolFile::Kind kind, DomainId domain,
                                              const std::string& from) const {
  std::string name = PathFor(kind, domain, fs::path(from).filename().string());
  XENOSCOPE_RETURN_IF_ERROR(directory_.Replace(
      name, [&](int to) { return CopyFile(from, to, fmt::format("{}/{}", path(), name)); }));
  return SymbolFile{kind, domain, std::move(name), from};
}

absl::StatusOr<SymbolFile> Writer::AddSymbolContent(SymbolFile::Kind kind, DomainId domain,
                                                    Bytes content,
                                                    const std::string& original) const {
  const auto next = [left = content]() mutable { return std::exchange(left, Bytes()); };
  return AddSymbolParts(kind, domain, next, original);
}

absl::StatusOr<SymbolFile> Writer::AddSymbolParts(
    SymbolFile::Kind kind, DomainId domain, const std::function<absl::StatusOr<Bytes>()>& next,
    const std::string& original) const {
  std::string name = PathFor(kind, domain, original);
  XENOSCOPE_RETURN_IF_ERROR(directory_.Replace(name, [&](int file) -> absl::Status {
    while (true) {
      XENOSCOPE_ASSIGN_OR_RETURN(const Bytes part, next());
      if (part.empty()) return absl::OkStatus();
      if (const int error = WriteAll(file, part); error != 0) {
        return WriteError(error, fmt::format("cannot write {}/{}", path(), name));
      }
    }
  }));
  return SymbolFile{kind, domain, std::move(name), original};
}

absl::Status Writer::Sync() const { return TreeSync().Sync(directory_); }

absl::Status Writer::WriteInfo(const RecordingInfo& info) const {
  const bool over = info.state != State::kRecording;
  if (over) {
    directory_.Remove(std::string(kReserveFile)).IgnoreError();
    XENOSCOPE_RETURN_IF_ERROR(Sync());
  }
  const std::string json = ToJson(info);
  XENOSCOPE_RETURN_IF_ERROR(directory_.Replace(std::string(kInfoFile), AsBytes(json)));
  return over ? directory_.Sync() : absl::OkStatus();
}

}  // namespace xenoscope::recording
