// Build-ids of the files that processes of any user execute. The files are not trusted, so a
// process without privileges reads them (sampler/sandbox.h); this process only opens them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sampler/sandbox.h"

namespace xenoscope::sampler {

// The reader of build-ids.
class BuildIds {
 public:
  // What is read of a file.
  enum class Wanted : char { kBuildId, kBuildOrContentId };

  // Returns the file's build-id (note NT_GNU_BUILD_ID) as bytes; empty when it has none, is no
  // regular file or cannot be read.
  std::vector<uint8_t> Read(const std::string& path);
  // Returns the build-id of the file with number `inode`, or else its content id
  // (symbolizer/elf/build_id.h), as bytes; empty when another file is at `path`, or it is no ELF
  // file, no regular file or cannot be read. O(size), of 64 MiB at most.
  std::vector<uint8_t> ReadOrContentId(const std::string& path, uint64_t inode);

  // Returns what went wrong, for the user: one line each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Returns what is wanted of the file at `path`, if that has the number `inode` or any has.
  std::vector<uint8_t> ReadId(const std::string& path, std::optional<uint64_t> inode,
                              Wanted wanted);
  // Returns whether there is a process that answers, after starting one if necessary.
  bool Ready();

  std::optional<Sandbox> reader_;
  int started_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace xenoscope::sampler
