#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace xenoscope {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "cannot open {}", path);
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoError(error, "cannot stat {}", path);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return InvalidError("{} is not a regular file", path);
  }
  MappedFile file;
  file.path_ = path;
  if (info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    close(fd);
    if (address == MAP_FAILED) return ErrnoError(error, "cannot map {} ({} bytes)", path, size);
    file.bytes_ = Bytes(static_cast<const std::byte*>(address), size);
  } else {
    close(fd);
  }
  return file;
}

MappedFile::~MappedFile() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): mmap gave it without const
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Forget(uint64_t offset) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t whole = std::min<uint64_t>(offset, bytes_.size()) / page * page;
  if (whole == 0) return;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): advice does not write
  madvise(const_cast<std::byte*>(bytes_.data()), whole, MADV_DONTNEED);
}

}  // namespace xenoscope
