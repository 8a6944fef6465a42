// Makes recordings from fuzzers' inputs: files by name, in a directory of their own, with correct
// checksums, since wrong ones would stop most inputs.
//
// An input is parts, each after "%%%%". The first part is the target's own; each other part is a
// file: a line with its path in the recording, then its content.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/crc.h"
#include "recording/sample_format.h"

namespace xenoscope::fuzz {

inline constexpr std::string_view kPartMark = "%%%%";

// Returns the parts of an input; the first is what comes before the first mark.
inline std::vector<std::string_view> PartsOf(std::string_view input) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = input.find(kPartMark);
    parts.push_back(input.substr(0, end));
    if (end == std::string_view::npos) return parts;
    input.remove_prefix(end + kPartMark.size());
  }
}

// Corrects the checksums of all chunks of a samples file that are where a reader looks for them.
inline void RepairChunks(std::string& file) {
  using recording::ChunkHeader;
  size_t at = sizeof(recording::FileHeader);
  while (at + sizeof(ChunkHeader) <= file.size()) {
    ChunkHeader header;
    std::memcpy(&header, &file[at], sizeof header);
    if (header.magic != recording::kChunkMagic) {
      ++at;
      continue;
    }
    const uint64_t size = uint64_t{header.count} * header.entry_size;
    const size_t begin = at + sizeof header;
    at = begin;
    if (size > file.size() - begin) continue;
    const Bytes entries = std::as_bytes(std::span(file)).subspan(begin, size);
    header.entries_crc = Crc32(entries);
    header.header_crc =
        Crc32(std::as_bytes(std::span(&header, 1)).first(offsetof(ChunkHeader, header_crc)));
    std::memcpy(&file[begin - sizeof header], &header, sizeof header);
    at = begin + size;
  }
}

// A directory that is the current one while the program runs, so that relative paths lead into it.
class WorkDirectory {
 public:
  WorkDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "xenoscope_fuzz.XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
    std::filesystem::current_path(path_);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  ~WorkDirectory() {
    std::error_code ignored;
    std::filesystem::current_path("/", ignored);
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry.path());
    }
  }

 private:
  std::string path_;
};

// Returns whether it names a file below the directory where it is used.
inline bool StaysBelow(std::string_view path) {
  constexpr size_t kLongest = 200;
  return !path.empty() && path.size() < kLongest && path.front() != '/' &&
         path.find("..") == std::string_view::npos && path.find('\0') == std::string_view::npos;
}

// Writes a part as a file; one that cannot be a file below `directory` is left out.
inline void WriteFilePart(const std::string& directory, std::string_view part) {
  const size_t line = part.find('\n');
  const std::string_view path = part.substr(0, line);
  if (line == std::string_view::npos || !StaysBelow(path)) return;
  std::string content(part.substr(line + 1));
  if (path.ends_with(".samples") || path.ends_with("boot-trace")) RepairChunks(content);
  const std::filesystem::path whole = std::filesystem::path(directory) / path;
  std::error_code error;
  std::filesystem::create_directories(whole.parent_path(), error);
  std::FILE* const file = std::fopen(whole.c_str(), "wb");
  if (file == nullptr) return;  // a directory has its name
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
}

}  // namespace xenoscope::fuzz
