// A cache on disk of tables that were made from files of symbols, so that the next report need not
// make them again. If the directory cannot be written there is no cache, silently.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/mapped_file.h"

namespace xenoscope::symbolizer {

class IndexCache {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  // What a table is of: frames of lines (frame_table.h), or rules for unwinding (unwind_table.h).
  enum class Kind : uint8_t { kFrames, kUnwind };

  // Keeps tables in `directory`, which is made with the first one, of at most `max_bytes` bytes in
  // all: the least recently used goes first.
  explicit IndexCache(std::string directory, uint64_t max_bytes = kMaxBytes)
      : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  // Returns xenoscope/ in $XDG_CACHE_HOME, else in ~/.cache; nothing when neither is known.
  static std::optional<std::string> DefaultDirectory();

  // Returns what was stored for the file with this build-id (empty: it has none) at this place, if
  // the file has not changed since. A build-id alone does not suffice: a guest's file may carry
  // that of another file.
  [[nodiscard]] std::optional<MappedFile> Find(const std::string& build_id,
                                               const FileIdentity& file,
                                               Kind kind = Kind::kFrames) const;
  // Stores a table in one step: a reader sees all of it or nothing.
  void Store(const std::string& build_id, const FileIdentity& file, const std::string& bytes,
             Kind kind = Kind::kFrames) const;

 private:
  [[nodiscard]] std::string PathOf(const std::string& build_id, const FileIdentity& file,
                                   Kind kind) const;
  void EvictOldest() const;

  std::string directory_;
  uint64_t max_bytes_;
};

}  // namespace xenoscope::symbolizer
