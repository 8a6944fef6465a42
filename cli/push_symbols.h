// `push --symbols`: the functions of programs' files, for code whose names are not known yet.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/store.h"

namespace xenoscope::cli {

struct PushedSymbols {
  size_t files = 0;                   // whose functions the store has now
  std::vector<std::string> left_out;  // the first of the others, with reasons
  size_t others = 0;                  // how many there are
};

// Adds the functions of these files, and of all files below those that are directories, to the
// store. Files in directories that are no programs are left out. Errors: a named file cannot be
// read, or has no functions; those of the store.
absl::StatusOr<PushedSymbols> PushSymbols(const std::vector<std::string>& paths, store::Store& to);

}  // namespace xenoscope::cli
