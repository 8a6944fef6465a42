// The last recordings of a recorder that never ends, in one directory: the oldest are removed when
// there are too many. Those that a store does not have yet are its queue.
//
// A slice is NAME.xeno, where NAME is the time at which it began; an empty file NAME.pushed beside
// it says that a store has it. Nothing else in the directory is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/directory.h"

namespace xenoscope::recording {

class SliceRing {
 public:
  // What is kept at most; 0: no limit.
  struct Limits {
    uint64_t slices = 0;
    uint64_t bytes = 0;
  };

  // Opens the directory, which is made if it is not there. Errors: those of opening it.
  static absl::StatusOr<SliceRing> Open(const std::string& path, const Limits& limits);

  // Returns the name of a slice that begins at this time, in nanoseconds of UTC since 1970.
  [[nodiscard]] static std::string NameAt(uint64_t utc_ns);
  [[nodiscard]] std::string PathOf(const std::string& name) const {
    return directory_.path() + "/" + name;
  }

  // Returns the names of slices, oldest first.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Names() const;
  // Returns the names of slices before the slice `end` that can be read and that no store has yet,
  // oldest first.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Queued(const std::string& end) const;
  // Removes the slice if it is none yet: its recorder ended before it could be read. Returns
  // whether it was removed.
  absl::StatusOr<bool> RemoveRemains(const std::string& name) const;
  // Makes the slice's symbols that are equal to those of the slice before one file with these:
  // they are most of a short slice, and change seldom. Where that cannot be done, they stay as they
  // are. O(bytes of symbols).
  void ShareSymbols(const std::string& name) const;
  // Notes that a store has the slice.
  absl::Status MarkPushed(const std::string& name) const;

  // Removes the oldest slices until the others are within the limits, where a file of several
  // slices counts once; the newest one always stays.
  // Returns how many of the removed ones no store had. O(files).
  absl::StatusOr<size_t> Trim() const;
  // Removes the oldest slice, if there are two. Returns as Trim.
  absl::StatusOr<size_t> RemoveOldest() const;

 private:
  SliceRing(Directory directory, const Limits& limits)
      : directory_(std::move(directory)), limits_(limits) {}
  [[nodiscard]] bool CanBeRead(const std::string& name) const;
  absl::StatusOr<size_t> Remove(const std::string& name) const;

  Directory directory_;
  Limits limits_;
};

}  // namespace xenoscope::recording
