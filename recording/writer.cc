#include "recording/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "recording/info_json.h"
#include "recording/layout.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

constexpr off_t kReserve = off_t{256} * 1024;

absl::Status DiskError(int error, std::string_view path) {
  if (error == ENOSPC || error == EDQUOT) {
    return ExhaustedError(
        "the disk is full: cannot write {}; free some space, or record elsewhere "
        "with -o",
        path);
  }
  return ErrnoError(error, "cannot write {}", path);
}

// An open file descriptor that is closed in the end.
class File {
 public:
  File(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// 0, or the errno that stopped it.
int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

// Reading to the end works where sizes do not, as in /proc.
absl::Status CopyFile(const std::string& from, const std::string& to) {
  const File in(from, O_RDONLY);
  if (in.fd() < 0) return ErrnoError(errno, "cannot read {}", from);
  const File out(to, O_WRONLY | O_CREAT | O_TRUNC);
  if (out.fd() < 0) return DiskError(errno, to);
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const ssize_t n = read(in.fd(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "cannot read {}", from);
    if (n == 0) return absl::OkStatus();
    const int error = WriteAll(out.fd(), {buffer.data(), static_cast<size_t>(n)});
    if (error != 0) return DiskError(error, to);
  }
}

// Whether there was something to move away.
absl::StatusOr<bool> MoveAway(const std::string& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return false;
  const auto is_recording = [](const fs::path& candidate) {
    std::error_code ignored;
    return fs::exists(candidate / kInfoFile, ignored) || fs::is_empty(candidate, ignored);
  };
  if (!is_recording(path)) {
    return PreconditionError("{} exists and is not a recording: choose another name with -o", path);
  }
  const std::string old = path + ".old";
  if (fs::exists(old, error)) {
    if (!is_recording(old)) {
      return PreconditionError("{} is in the way and is not a recording: move it", old);
    }
    fs::remove_all(old, error);
    if (error) return ErrnoError(error.value(), "cannot remove {}", old);
  }
  fs::rename(path, old, error);
  if (error) return ErrnoError(error.value(), "cannot rename {} to {}", path, old);
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
  }
  return "symbols";
}

// Two images of the same name keep apart.
std::string FreeName(const std::string& root, const std::string& wanted) {
  std::error_code ignored;
  std::string name = wanted;
  for (int i = 2; fs::exists(fs::path(root) / name, ignored); ++i) {
    name = fmt::format("{}.{}", wanted, i);
  }
  return name;
}

}  // namespace

absl::StatusOr<Writer> Writer::Create(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  XENOSCOPE_ASSIGN_OR_RETURN(const bool moved, MoveAway(path));
  Writer writer(path, moved);
  std::error_code error;
  for (const std::string_view name : {kSamplesDirectory, kSymbolsDirectory, kGuestsDirectory}) {
    fs::create_directories(fs::path(path) / name, error);
    if (error) return DiskError(error.value(), path);
  }
  const File reserve(writer.In(kReserveFile), O_WRONLY | O_CREAT | O_TRUNC);
  const int failed = reserve.fd() < 0 ? errno : posix_fallocate(reserve.fd(), 0, kReserve);
  if (failed == ENOSPC || failed == EDQUOT) return DiskError(failed, path);
  return writer;  // a file system that cannot reserve still records
}

void Writer::Abandon() const {
  std::error_code error;
  fs::remove_all(path_, error);
  if (moved_ && !error) fs::rename(path_ + ".old", path_, error);
}

std::string Writer::In(std::string_view name) const { return (fs::path(path_) / name).string(); }

std::string Writer::TracePath() const { return In(kTraceFile); }

absl::StatusOr<SampleWriter> Writer::CreateSamples(std::string_view source) const {
  return SampleWriter::Create(In(SamplesPath(source)));
}

absl::StatusOr<std::string> Writer::PlaceOf(SymbolFile::Kind kind, DomainId domain,
                                            const std::string& leaf) const {
  if (kind == SymbolFile::Kind::kXensyms) {
    return fmt::format("{}/{}", kSymbolsDirectory, NameOf(kind));
  }
  std::error_code error;
  if (kind == SymbolFile::Kind::kLivepatches) {
    const std::string directory = fmt::format("{}/{}", kSymbolsDirectory, NameOf(kind));
    fs::create_directories(In(directory), error);
    if (error) return DiskError(error.value(), In(directory));
    return directory + "/list";
  }
  const bool image = kind == SymbolFile::Kind::kImage;
  if (domain == kDom0 && !image) return fmt::format("{}/dom0.{}", kSymbolsDirectory, NameOf(kind));
  fs::create_directories(In(GuestDirectory(domain)), error);
  if (error) return DiskError(error.value(), In(GuestDirectory(domain)));
  return FreeName(path_, fmt::format("{}/{}", GuestDirectory(domain), image ? leaf : NameOf(kind)));
}

absl::StatusOr<SymbolFile> Writer::AddSymbols(SymbolFile::Kind kind, DomainId domain,
                                              const std::string& from) const {
  XENOSCOPE_ASSIGN_OR_RETURN(std::string name,
                             PlaceOf(kind, domain, fs::path(from).filename().string()));
  XENOSCOPE_RETURN_IF_ERROR(CopyFile(from, In(name)));
  return SymbolFile{kind, domain, std::move(name), from};
}

absl::StatusOr<SymbolFile> Writer::AddSymbolContent(SymbolFile::Kind kind, DomainId domain,
                                                    Bytes content,
                                                    const std::string& original) const {
  XENOSCOPE_ASSIGN_OR_RETURN(std::string name, PlaceOf(kind, domain, original));
  const File out(In(name), O_WRONLY | O_CREAT | O_TRUNC);
  if (out.fd() < 0) return DiskError(errno, In(name));
  const int error = WriteAll(out.fd(), AsText(content));
  if (error != 0) return DiskError(error, In(name));
  return SymbolFile{kind, domain, std::move(name), original};
}

absl::Status Writer::WriteInfo(const RecordingInfo& info) const {
  const std::string final_path = In(kInfoFile);
  const std::string temporary = final_path + ".new";
  if (info.state == State::kComplete) unlink(In(kReserveFile).c_str());
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.fd() < 0) return DiskError(errno, temporary);
    int error = WriteAll(file.fd(), ToJson(info));
    // While sampling goes on nobody has the time to wait for the disk.
    if (error == 0 && info.state == State::kComplete && fsync(file.fd()) != 0) error = errno;
    if (error != 0) {
      unlink(temporary.c_str());
      return DiskError(error, temporary);
    }
  }
  if (rename(temporary.c_str(), final_path.c_str()) != 0) return DiskError(errno, final_path);
  return absl::OkStatus();
}

}  // namespace xenoscope::recording
