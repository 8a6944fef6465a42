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
#include "base/parallel.h"

namespace xenoscope {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, std::string name) {
  if (name.empty()) name = path;
  struct stat info {};
  // A guest may have named the path: opening a pipe waits, and opening a watchdog starts it.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return InvalidError("{} is not a regular file", name);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoError(errno, "cannot open {}", name);
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoError(error, "cannot stat {}", name);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return InvalidError("{} is not a regular file", name);
  }
  MappedFile file;
  constexpr uint64_t kNanosecondsInSecond = 1'000'000'000;
  file.identity_ = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                    static_cast<uint64_t>(info.st_mtim.tv_sec) * kNanosecondsInSecond +
                        static_cast<uint64_t>(info.st_mtim.tv_nsec)};
  if (info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    close(fd);
    if (address == MAP_FAILED) return ErrnoError(error, "cannot map {} ({} bytes)", name, size);
    file.bytes_ = Bytes(static_cast<const std::byte*>(address), size);
    file.range_ = RegisterMapping(file.bytes_, name, info.st_dev, info.st_ino);
  } else {
    close(fd);
  }
  file.name_ = std::move(name);
  return file;
}

namespace {

std::byte* Writable(Bytes bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): advice does not write
  return const_cast<std::byte*>(bytes.data());
}

// Returns whether nearly all of the file is in the page cache, by a sample of its pages.
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

constexpr size_t kMinPart = size_t{16} << 20;  // the smallest part that is worth a thread

// Lets several threads do something, each with a part of the bytes.
void InParts(Bytes bytes, void (*work)(Bytes part)) {
  constexpr size_t kStep = size_t{2} << 20;  // parts begin at whole pages
  const size_t parts = std::min<size_t>(ThreadLimit(), bytes.size() / kMinPart);
  const size_t part = (bytes.size() / parts / kStep + 1) * kStep;
  std::vector<std::jthread> threads;
  for (size_t at = part; at < bytes.size(); at += part) {
    const Bytes mine = bytes.subspan(at, std::min(part, bytes.size() - at));
    threads.push_back(StartThread([work, mine] { work(mine); }));
  }
  work(bytes.first(std::min(part, bytes.size())));
}

// Does nothing before Linux 5.14. To touch pages, one fault for each 64 KiB, takes longer where
// faults are expensive, as in virtual machines.
void MapPages(Bytes bytes) { madvise(Writable(bytes), bytes.size(), MADV_POPULATE_READ); }

void Unmap(Bytes bytes) { madvise(Writable(bytes), bytes.size(), MADV_DONTNEED); }

}  // namespace

void MappedFile::Populate() const {
  if (bytes_.size() >= kMinPart && IsCached(bytes_)) InParts(bytes_, MapPages);
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  UnregisterMapping(range_);
  // Unmapping 600 MB takes 25 ms with one thread, and 13 ms with two.
  if (bytes_.size() >= kMinPart) InParts(bytes_, Unmap);
  munmap(Writable(bytes_), bytes_.size());
}

}  // namespace xenoscope
