#include "symbolizer/file_finder.h"

#include <dirent.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/crc.h"
#include "base/error.h"
#include "symbolizer/dwarf/dwarf_cursor.h"
#include "symbolizer/elf/build_id.h"

namespace xenoscope::symbolizer {
namespace {

constexpr const char* kDebugDirectory = "/usr/lib/debug";

std::string Hexadecimal(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// Returns the build-id of a file that dwz made; DWARF 5 has it in .debug_sup.
std::string IdOfAlt(const ElfFile& elf) {
  DwarfCursor sup(elf.Section(".debug_sup"));
  if (sup.AtEnd()) return elf.BuildId();
  sup.Skip(2);  // the version
  if (sup.U8() == 0) return {};
  sup.Text();
  const uint64_t length = sup.Uleb();
  if (sup.failed() || length != sup.left()) return {};
  return Hexadecimal(sup.Rest());
}

// A file descriptor that is closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// A walk through the files below a directory.
class Walk {
 public:
  explicit Walk(absl::FunctionRef<void(const std::string& path)> use) : use_(use) {}

  // Takes what is in the directory of this file descriptor, which it closes.
  void Enter(int fd, const std::string& path, int depth) {
    const std::unique_ptr<DIR, Closer> directory(fdopendir(fd));
    if (!directory) {
      close(fd);
      return;
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is this function's own
    while (const dirent* const entry = readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (names_left_ == 0) return;
      --names_left_;
      const std::string below = fmt::format("{}/{}", path, name);
      struct stat found {};
      if (fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(found.st_mode)) use_(below);
      if (!S_ISDIR(found.st_mode) || depth == kMaxDepth) continue;
      const int inner = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (inner >= 0) Enter(inner, below, depth + 1);
    }
  }

 private:
  struct Closer {
    void operator()(DIR* directory) const { closedir(directory); }
  };
  static constexpr int kMaxDepth = 16;

  absl::FunctionRef<void(const std::string& path)> use_;
  int names_left_ = 100'000;
};

// Opens the debug file of `elf`: that of an object file is one, too.
absl::StatusOr<ElfFile> OpenLike(const ElfFile& elf, Bytes bytes) {
  if (!elf.is_object()) return ElfFile::Open(bytes);
  XENOSCOPE_ASSIGN_OR_RETURN(ElfFile debug, ElfFile::OpenAny(bytes));
  if (!debug.is_object()) return InvalidError("it is not the debug file of an object file");
  return debug;
}

}  // namespace

FileFinder::FileFinder(std::string root, std::string images, std::shared_ptr<DebugServer> server)
    : root_(std::move(root)), images_(std::move(images)), server_(std::move(server)) {}

absl::StatusOr<FileContent> FileFinder::OpenImage(const std::string& build_id) const {
  if (images_.empty()) return NotFoundError("there are no images");
  auto content = FileContent::Open(fmt::format("{}/{}", images_, build_id));
  // Files of a recording may be compressed one by one.
  return content.ok() ? std::move(content)
                      : FileContent::Open(fmt::format("{}/{}.zst", images_, build_id));
}

absl::StatusOr<FileContent> FileFinder::Open(const std::string& path) const {
  if (root_ == "/") return FileContent::Open(path);
  // Opening it so neither blocks nor has side effects.
  const Descriptor file(OpenBelow(path, O_PATH | O_CLOEXEC));
  if (file.get() < 0) return ErrnoError(errno, "cannot open {} below {}", path, root_);
  auto content = FileContent::Open(fmt::format("/proc/self/fd/{}", file.get()), root_ + path);
  if (!content.ok()) return InvalidError("cannot read {} below {}", path, root_);
  return content;
}

int FileFinder::OpenBelow(const std::string& path, int flags) const {
  const Descriptor root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return -1;
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how));
}

absl::Status FileFinder::ForEachFile(const std::string& directory,
                                     absl::FunctionRef<void(const std::string& path)> use) const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const int opened = root_ == "/" ? open(directory.c_str(), kFlags) : OpenBelow(directory, kFlags);
  if (opened < 0) return ErrnoError(errno, "cannot open {} below {}", directory, root_);
  Walk(use).Enter(opened, directory, 0);
  return absl::OkStatus();
}

DebugLink DebugLinkOf(const ElfFile& elf) {
  GElf_Word crc = 0;
  const char* name = dwelf_elf_gnu_debuglink(elf.get(), &crc);
  DebugLink link;
  if (name == nullptr || std::string_view(name).find('/') != std::string_view::npos) return link;
  link.name = name;
  link.crc = crc;
  return link;
}

AltLink AltLinkOf(const ElfFile& elf) {
  AltLink link;
  DwarfCursor old(elf.Section(".gnu_debugaltlink"));
  DwarfCursor sup(elf.Section(".debug_sup"));
  Bytes id;
  if (!old.AtEnd()) {
    link.name = old.Text();
    id = old.Rest();
  } else if (!sup.AtEnd()) {
    const auto version = sup.Take<uint16_t>();
    const bool is_supplementary = sup.U8() != 0;
    link.name = sup.Text();
    const uint64_t length = sup.Uleb();
    if (version < 2 || is_supplementary || length != sup.left()) return {};
    id = sup.Rest();
  }
  constexpr size_t kMaxIdDigits = 64;
  if (id.size() > kMaxIdDigits) return {};
  link.build_id = Hexadecimal(id);
  return link;
}

absl::StatusOr<FileContent> FileFinder::FetchProgram(const std::string& build_id) const {
  if (server_ == nullptr) return NotFoundError("no debug server is asked");
  return server_->Program(build_id);
}

absl::StatusOr<FileFinder::Found> FileFinder::FetchDebug(const std::string& build_id) const {
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, server_->DebugFile(build_id));
  return Found{std::move(content), build_id + ".debug"};
}

absl::StatusOr<FileFinder::Found> FileFinder::AltFileOf(const AltLink& link,
                                                        const std::string& path) const {
  auto here = AltFileHere(link, path);
  if (here.ok() || server_ == nullptr || link.build_id.empty()) return here;
  auto fetched = FetchDebug(link.build_id);
  return fetched.ok() ? std::move(fetched) : std::move(here);
}

absl::StatusOr<FileFinder::Found> FileFinder::DebugFileOf(const ElfFile& elf,
                                                          const std::string& path,
                                                          const std::string& id) const {
  auto here = DebugFileHere(elf, path, id);
  const std::string build_id = elf.BuildId();
  if (here.ok() || server_ == nullptr || build_id.empty()) return here;
  auto fetched = FetchDebug(build_id);
  if (fetched.ok()) return fetched;
  return InContext(here.status(), Message(fetched.status()));
}

absl::StatusOr<FileFinder::Found> FileFinder::AltFileHere(const AltLink& link,
                                                          const std::string& path) const {
  const std::string& id = link.build_id;
  if (auto content = OpenImage(id + ".debug"); content.ok()) {
    const auto elf = ElfFile::OpenAny(content->bytes());
    if (elf.ok() && IdOfAlt(*elf) == id) return Found{*std::move(content), id + ".debug"};
  }
  if (id.size() > 2) {
    const std::string by_id =
        fmt::format("{}/.build-id/{}/{}.debug", kDebugDirectory, id.substr(0, 2), id.substr(2));
    auto content = Open(by_id);
    if (!content.ok() && root_ != "/") content = FileContent::Open(by_id);
    if (content.ok()) {
      const auto elf = ElfFile::OpenAny(content->bytes());
      if (elf.ok() && IdOfAlt(*elf) == id) return Found{*std::move(content), by_id};
    }
  }
  const std::filesystem::path name(link.name);
  const std::string named =
      (name.is_absolute() ? name : std::filesystem::path(path).parent_path() / name).string();
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, Open(named));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::OpenAny(content.bytes()));
  if (IdOfAlt(elf) != id) return InvalidError("{} is of another build", named);
  return Found{std::move(content), named};
}

absl::StatusOr<FileFinder::Found> FileFinder::DebugFileHere(const ElfFile& elf,
                                                            const std::string& path,
                                                            const std::string& id) const {
  const std::string build_id = elf.BuildId();
  if (build_id.empty() && IsContentId(id)) {
    if (auto content = OpenImage(id + ".debug"); content.ok()) {
      return Found{*std::move(content), id + ".debug"};
    }
  }
  if (auto content = OpenImage(build_id + ".debug"); content.ok()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile debug, OpenLike(elf, content->bytes()));
    if (debug.BuildId() == build_id) return Found{*std::move(content), build_id + ".debug"};
  }
  if (build_id.size() > 2) {
    auto found = OpenDebug(elf,
                           fmt::format("{}/.build-id/{}/{}.debug", kDebugDirectory,
                                       build_id.substr(0, 2), build_id.substr(2)),
                           /*by_id=*/true, /*anywhere=*/true);
    if (found.ok()) return found;
  }
  const DebugLink link = DebugLinkOf(elf);
  if (link.name.empty() && elf.is_object()) return DebugFileOfModule(elf, path);
  if (link.name.empty()) {
    return NotFoundError("it has no debug file in {}", kDebugDirectory);
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  bool met_another = false;
  for (const std::string& candidate :
       {fmt::format("{}/{}", directory, link.name),
        fmt::format("{}/.debug/{}", directory, link.name),
        fmt::format("{}{}/{}", kDebugDirectory, directory, link.name)}) {
    // On this machine only names of a build-id's digits are looked up, as a guest's file chooses
    // its own debug link.
    auto found = OpenDebug(elf, candidate, /*by_id=*/false, /*anywhere=*/false);
    if (!found.ok()) continue;
    if (Crc32(found->content.bytes()) == link.crc) return found;
    met_another = true;
  }
  return NotFoundError("its debug file {} is {}", link.name,
                       met_another ? "of another build" : "not on this machine");
}

absl::StatusOr<FileFinder::Found> FileFinder::DebugFileOfModule(const ElfFile& elf,
                                                                const std::string& path) const {
  const std::string own(WithoutCompression(path));
  const bool is_plain = !elf.BuildId().empty() && own.starts_with('/') &&
                        std::filesystem::path(own).lexically_normal() == own;
  // Where /lib is a link, packages name the file by either path.
  constexpr std::string_view kUsr = "/usr";
  const std::string other =
      own.starts_with("/usr/lib/") ? own.substr(kUsr.size()) : fmt::format("{}{}", kUsr, own);
  for (const std::string& below : {own, other}) {
    for (const char* const ending : {"", ".debug"}) {
      if (!is_plain) continue;
      auto found = OpenDebug(elf, fmt::format("{}{}{}", kDebugDirectory, below, ending),
                             /*by_id=*/true, /*anywhere=*/true);
      if (found.ok()) return found;
    }
  }
  return NotFoundError("it has no debug file in {}", kDebugDirectory);
}

absl::StatusOr<FileFinder::Found> FileFinder::OpenDebug(const ElfFile& elf, const std::string& path,
                                                        bool by_id, bool anywhere) const {
  absl::StatusOr<FileContent> content = Open(path);
  if (!content.ok() && root_ != "/" && anywhere) content = FileContent::Open(path);
  if (!content.ok()) return content.status();
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile debug, OpenLike(elf, content->bytes()));
  if (by_id && debug.BuildId() != elf.BuildId()) {
    return InvalidError("{} is of another build", path);
  }
  return Found{*std::move(content), path};
}

}  // namespace xenoscope::symbolizer
