// Build ids of the files that processes of any user execute. Their content is anybody's, so they
// are read by a process without privileges (sampler/sandbox.h); here they are only opened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sampler/sandbox.h"

namespace xenoscope::sampler {

class BuildIds {
 public:
  // The build id of the file (note NT_GNU_BUILD_ID) as bytes; empty when it has none, is no regular
  // file or cannot be read.
  std::vector<uint8_t> Read(const std::string& path);

  // What went wrong, for the user: one line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // Whether there is a process that answers, after starting one if need be.
  bool Ready();

  std::optional<Sandbox> reader_;
  int started_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace xenoscope::sampler
