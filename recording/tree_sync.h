// Brings a directory with all that is in it to the disk, again and again.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/directory.h"

namespace xenoscope::recording {

class TreeSync {
 public:
  // The content of each file that has changed since the last time, then the directories that name
  // them, the lowest first. Waits for the disk. Errors: the first of WriteError; the rest is still
  // tried. Other processes may add, remove and write files meanwhile.
  absl::Status Sync(const Directory& directory);

 private:
  // What changes in a file whenever it is written to: files of recordings only grow.
  struct Version {
    off_t size = 0;
    int64_t changed_s = 0;
    int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  absl::Status SyncFile(const Directory& directory, const std::string& name);

  absl::flat_hash_map<ino_t, Version> synced_;
};

}  // namespace xenoscope::recording
