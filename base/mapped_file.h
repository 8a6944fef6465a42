// A file as bytes in memory, read-only, paged in by the kernel as it is used.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mapped_ranges.h"

namespace xenoscope {

// Which file it was, and in which state: the same as long as nobody changes it or puts another in
// its place.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  uint64_t changed_ns = 0;  // st_mtim

  bool operator==(const FileIdentity&) const = default;
};

// A file may become shorter while it is mapped. What lay behind its new end reads as zeros then
// (mapped_ranges.h), and what was computed from it is wrong: a command that has read files asks
// TruncatedMappings() before it ends.
class MappedFile {
 public:
  // `name` stands for the path in messages; empty: the path itself. Errors: not found, permission,
  // not a regular file; each has the name.
  static absl::StatusOr<MappedFile> Open(const std::string& path, std::string name = {});

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(bytes_, other.bytes_);
    std::swap(identity_, other.identity_);
    std::swap(range_, other.range_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  const FileIdentity& identity() const { return identity_; }

  // Makes all pages known to the process at once, if the file is in the page cache: several
  // threads do it, in less than half of the time that touching the pages one by one takes in one
  // thread (some 30 ms a gigabyte with two). Does nothing for a file that would have to be read.
  void Populate() const;

  // Tells the kernel that [0, offset) is no longer needed, so that a long file does not fill
  // memory.
  void Forget(uint64_t offset) const;

 private:
  std::string name_;
  Bytes bytes_;
  FileIdentity identity_;
  MappedRange* range_ = nullptr;  // of bytes_; null where there are none
};

}  // namespace xenoscope
