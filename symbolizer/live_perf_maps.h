// The functions of JIT compilers in a recording that is being made: they become more.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/mapped_file.h"
#include "symbolizer/process_images.h"

namespace xenoscope::symbolizer {

class LivePerfMaps {
 public:
  // Gives `processes` the functions of all domains whose file in the recording's directory is
  // another one than at the last call. A file that cannot be read is left out.
  void ReadNew(const std::string& directory, ProcessImages& processes);

 private:
  absl::flat_hash_map<DomainId, FileIdentity> read_;
};

}  // namespace xenoscope::symbolizer
