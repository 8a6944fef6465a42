// Writes a directory with all its content to the disk, each time only what has changed.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/directory.h"

namespace xenoscope::recording {

class TreeSync {
 public:
  // Syncs each file that has changed since the last call, then the directories that name the files,
  // lowest first. Waits for the disk. Errors: the first one of WriteError; the rest is still tried.
  // Other processes may add, remove and write files meanwhile.
  absl::Status Sync(const Directory& directory);

 private:
  // The version of a file, which changes with every write: files of recordings only grow.
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
