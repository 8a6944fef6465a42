#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

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

namespace {

std::byte* Writable(Bytes bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): advice does not write
  return const_cast<std::byte*>(bytes.data());
}

// Whether nearly all of it is in the page cache, as a sample of its pages shows.
bool IsCached(Bytes bytes) {
  constexpr size_t kSample = 64;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t cached = 0;
  for (size_t i = 0; i < kSample; ++i) {
    unsigned char resident = 0;
    const size_t at = bytes.size() / kSample * i / page * page;
    if (mincore(Writable(bytes) + at, 1, &resident) == 0) cached += resident & 1;
  }
  return cached + 2 >= kSample;
}

}  // namespace

void MappedFile::Populate() const {
  constexpr size_t kLeast = size_t{16} << 20;  // of a thread
  constexpr size_t kStep = size_t{2} << 20;    // parts begin at whole pages
  if (bytes_.size() < kLeast || !IsCached(bytes_)) return;
  const size_t most = std::max(std::thread::hardware_concurrency(), 1U);
  const size_t parts = std::min(most, bytes_.size() / kLeast);
  const size_t part = (bytes_.size() / parts / kStep + 1) * kStep;
  std::vector<std::jthread> threads;
  for (size_t at = 0; at < bytes_.size(); at += part) {
    const Bytes mine = bytes_.subspan(at, std::min(part, bytes_.size() - at));
    // Before Linux 5.14 there is no such advice; then pages come when they are touched.
    threads.emplace_back([mine] { madvise(Writable(mine), mine.size(), MADV_POPULATE_READ); });
  }
}

void MappedFile::Forget(uint64_t offset) const {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t whole = std::min<uint64_t>(offset, bytes_.size()) / page * page;
  if (whole == 0) return;
  madvise(Writable(bytes_), whole, MADV_DONTNEED);
}

}  // namespace xenoscope
