// Tables that were made from files of symbols, kept on disk so that the next report need not make
// them again. Who cannot write there has no cache, and nobody is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/mapped_file.h"

namespace xenoscope::symbolizer {

class IndexCache {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  // In `directory`, which is made when something is stored; together at most `most_bytes`: what was
  // not used for the longest time goes first.
  explicit IndexCache(std::string directory, uint64_t most_bytes = kMaxBytes)
      : directory_(std::move(directory)), max_bytes_(most_bytes) {}

  // xenoscope/ in $XDG_CACHE_HOME, else in ~/.cache; nothing when neither is known.
  static std::optional<std::string> DefaultDirectory();

  // What was made of the file with this build-id that is at this place and has not changed since.
  // A build-id alone would not do: a guest's file may bear that of another.
  std::optional<MappedFile> Find(const std::string& build_id, const FileIdentity& file) const;
  // Stores it in one step: a reader sees all of it or nothing.
  void Store(const std::string& build_id, const FileIdentity& file, const std::string& bytes) const;

 private:
  std::string PathOf(const std::string& build_id, const FileIdentity& file) const;
  void EvictOldest() const;

  std::string directory_;
  uint64_t max_bytes_;
};

}  // namespace xenoscope::symbolizer
