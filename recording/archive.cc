#include "recording/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/decompression_limit.h"
#include "base/directory.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "recording/libarchive.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTopDirectory = "recording.xeno";
constexpr uint64_t kMaxFiles = 100'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDepth = 8;  // limit of nested directories
constexpr mode_t kOwnersFile = 0600;

using ArchiveWriter = std::unique_ptr<archive, decltype(Libarchive::write_free)>;
using Reader = std::unique_ptr<archive, decltype(Libarchive::read_free)>;
using ArchiveEntry = std::unique_ptr<archive_entry, decltype(Libarchive::entry_free)>;

// Sets the locale of this thread to UTF-8 while it lives. libarchive takes names for text of the
// locale, and that of this process is "C", which is ASCII only; most names of files are UTF-8.
class Utf8Names {
 public:
  Utf8Names()
      : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)),
        before_(utf8_ == nullptr ? nullptr : uselocale(utf8_)) {}
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;
  ~Utf8Names() {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }

 private:
  locale_t utf8_;
  locale_t before_;
};

std::string ArchiveError(const Libarchive& library, archive* in) {
  const char* text = library.error_string(in);
  return text == nullptr ? "unknown error" : text;
}

absl::Status AddEntry(const Libarchive& library, archive* out, const std::string& name,
                      Bytes content) {
  const ArchiveEntry entry(library.entry_new(), library.entry_free);
  library.entry_set_pathname(entry.get(), fmt::format("{}/{}", kTopDirectory, name).c_str());
  library.entry_set_filetype(entry.get(), AE_IFREG);
  library.entry_set_perm(entry.get(), kOwnersFile);
  library.entry_set_size(entry.get(), static_cast<int64_t>(content.size()));
  library.entry_set_mtime(entry.get(), 0, 0);
  // A warning: the name is not UTF-8, and was written byte by byte.
  const int result = library.write_header(out, entry.get());
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
    return InvalidError("{}: {}", name, ArchiveError(library, out));
  }
  constexpr size_t kBlockSize = size_t{1} << 20;
  while (!content.empty()) {
    const Bytes block = content.first(std::min(kBlockSize, content.size()));
    if (library.write_data(out, block.data(), block.size()) !=
        static_cast<la_ssize_t>(block.size())) {
      return ExhaustedError("cannot write: {}", ArchiveError(library, out));
    }
    content = content.subspan(block.size());
  }
  return absl::OkStatus();
}

absl::Status AddAll(const Libarchive& library, archive* out, const std::string& directory,
                    const std::vector<AddedFile>& added) {
  // Names of all files; null: a file of the directory.
  std::map<std::string, const AddedFile*> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_symlink() || !at->is_regular_file()) continue;
    names[fs::path(at->path()).lexically_relative(directory).string()] = nullptr;
  }
  if (error) return ErrnoError(error.value(), "cannot read {}", directory);
  for (const AddedFile& file : added) names.try_emplace(file.name, &file);
  for (const auto& [name, file] : names) {
    MappedFile own;
    if (file == nullptr) {
      XENOSCOPE_ASSIGN_OR_RETURN(own, MappedFile::Open(fmt::format("{}/{}", directory, name)));
    }
    XENOSCOPE_RETURN_IF_ERROR(
        AddEntry(library, out, name, file == nullptr ? own.bytes() : file->content));
  }
  return absl::OkStatus();
}

// Returns the name below the recording's directory; nothing for one that leads out of it.
std::optional<std::string> SafeName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return std::nullopt;
  std::vector<std::string> parts = absl::StrSplit(std::string(name), '/');
  if (parts.back().empty()) parts.pop_back();  // a directory's ends with a slash
  if (parts.empty() || parts.size() > kMaxDepth) return std::nullopt;
  for (const std::string& part : parts) {
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos) {
      return std::nullopt;
    }
  }
  parts.erase(parts.begin());
  return fmt::format("{}", fmt::join(parts, "/"));
}

// Copies a file out of the archive. `allowed` is what is left of `limit`, in bytes.
absl::Status CopyOut(const Libarchive& library, archive* in, const Directory& directory,
                     const std::string& name, uint64_t limit, uint64_t& allowed) {
  const std::string path = fmt::format("{}/{}", directory.path(), name);
  XENOSCOPE_ASSIGN_OR_RETURN(const File file, directory.Create(name));
  const void* block = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  la_int64_t end = 0;
  int result = ARCHIVE_OK;
  while ((result = library.read_data_block(in, &block, &size, &offset)) == ARCHIVE_OK) {
    // The file has holes, which PackRecording does not make.
    if (offset != end) return InvalidError("its {} has holes", path);
    end += static_cast<la_int64_t>(size);
    if (size > allowed) {
      return DecompressionLimitError(limit);
    }
    allowed -= size;
    const auto* const bytes = static_cast<const std::byte*>(block);
    if (const int error = WriteAll(file.fd(), {bytes, size}); error != 0) {
      return WriteError(error, fmt::format("cannot write {}", path));
    }
  }
  if (result != ARCHIVE_EOF) return InvalidError("it is damaged: {}", ArchiveError(library, in));
  return absl::OkStatus();
}

absl::Status ReadAll(const Libarchive& library, archive* in, uint64_t limit,
                     const Directory& directory) {
  uint64_t allowed = limit;
  uint64_t files = 0;
  while (true) {
    archive_entry* entry = nullptr;
    const int result = library.read_next_header(in, &entry);
    if (result == ARCHIVE_EOF) break;
    const char* text = entry == nullptr ? nullptr : library.entry_pathname(entry);
    const bool is_odd_name = result == ARCHIVE_WARN && text != nullptr;
    if (result != ARCHIVE_OK && !is_odd_name)
      return InvalidError("it is damaged: {}", ArchiveError(library, in));
    const auto name = SafeName(text == nullptr ? "" : text);
    if (!name) return InvalidError("its file {} would be outside", text == nullptr ? "?" : text);
    const auto type = library.entry_filetype(entry);
    if (library.entry_hardlink(entry) != nullptr || (type != AE_IFREG && type != AE_IFDIR)) {
      return InvalidError("its {} is no file", text);
    }
    if (type == AE_IFDIR) continue;
    if (name->empty()) return InvalidError("its file {} is in no directory", text);
    if (++files > kMaxFiles) return InvalidError("it has more than {} files", kMaxFiles);
    XENOSCOPE_RETURN_IF_ERROR(CopyOut(library, in, directory, *name, limit, allowed));
  }
  if (files == 0) return InvalidError("it is empty");
  return absl::OkStatus();
}

}  // namespace

absl::Status PackRecording(const std::string& directory, const std::vector<AddedFile>& added,
                           const std::string& file) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Libarchive library, Libarchive::Load());
  const Utf8Names utf8_names;
  const std::string unfinished = file + ".part";
  unlink(unfinished.c_str());  // a killed process may have left the file
  const File part(
      open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnersFile));
  if (!part.is_open()) return WriteError(errno, fmt::format("cannot create {}", unfinished));
  const ArchiveWriter out(library.write_new(), library.write_free);
  library.write_add_filter_zstd(out.get());
  library.write_set_format_pax_restricted(out.get());
  if (library.write_open_fd(out.get(), part.fd()) != ARCHIVE_OK) {
    return InvalidError("cannot write {}: {}", unfinished, ArchiveError(library, out.get()));
  }
  absl::Status status = AddAll(library, out.get(), directory, added);
  if (library.write_close(out.get()) != ARCHIVE_OK && status.ok()) {
    status = ExhaustedError("cannot write {}: {}", unfinished, ArchiveError(library, out.get()));
  }
  std::error_code error;
  if (status.ok()) {
    fs::rename(unfinished, file, error);
    if (error) status = ErrnoError(error.value(), "cannot make {}", file);
  }
  if (!status.ok()) fs::remove(unfinished, error);
  return status;
}

absl::Status UnpackRecording(const std::string& file, const std::string& directory) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Libarchive library, Libarchive::Load());
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error) return ErrnoError(error.value(), "cannot read {}", file);
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t limit, DecompressionLimit(size));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto above, Directory::OpenParent(directory));
  const auto& [parent, name] = above;
  XENOSCOPE_ASSIGN_OR_RETURN(const Directory made, parent.Make(name));
  const Utf8Names utf8_names;
  const Reader in(library.read_new(), library.read_free);
  library.read_support_filter_zstd(in.get());
  library.read_support_format_tar(in.get());
  constexpr size_t kBlock = size_t{1} << 16;
  absl::Status status = absl::OkStatus();
  if (library.read_open_filename(in.get(), file.c_str(), kBlock) != ARCHIVE_OK) {
    status =
        InvalidError("it is not an archive of a recording: {}", ArchiveError(library, in.get()));
  } else {
    status = ReadAll(library, in.get(), limit, made);
  }
  if (status.ok()) return status;
  parent.RemoveAll(name).IgnoreError();
  return InContext(status, file);
}

}  // namespace xenoscope::recording
