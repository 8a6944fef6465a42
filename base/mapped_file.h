// A file as read-only bytes in memory, which the kernel reads as they are used.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mapped_ranges.h"

namespace xenoscope {

// Identifies a file and its state: equal as long as the file is neither changed nor replaced.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  uint64_t changed_ns = 0;  // st_mtim

  bool operator==(const FileIdentity&) const = default;
};

// A file that is mapped into memory. It may become shorter while it is mapped: the bytes behind its
// new end then read as zeros (mapped_ranges.h), and what was computed from them is wrong. A command
// that has read files asks TruncatedMappings() before it ends.
class MappedFile {
 public:
  // `name` stands for the path in messages; empty: the path itself. Errors: not found, permission,
  // not a regular file; each has the name.
  [[nodiscard]] static absl::StatusOr<MappedFile> Open(const std::string& path,
                                                       std::string name = {});

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

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  const FileIdentity& identity() const { return identity_; }

  // Maps all pages at once, if the file is in the page cache, so that no fault maps a few of them.
  // Several threads do it. Does nothing for a file that would have to be read.
  void Populate() const;

 private:
  std::string name_;
  Bytes bytes_;
  FileIdentity identity_;
  MappedRange* range_ = nullptr;  // the registration of bytes_; null where there are none
};

}  // namespace xenoscope
