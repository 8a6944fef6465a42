// The initcalls that are built into a Linux kernel: what reads a kernel's symbols knows their names
// and levels, and what reads its trace has their addresses.
#pragma once

#include <string>
#include <vector>

#include "base/mode.h"

namespace xenoscope {

struct Initcall {
  Address address = 0;  // of the function
  std::string function;
  // The levels at which functions of this name are called: "early", "pure", "core", "core_sync" and
  // so on (include/linux/init.h). One, unless several functions have the name.
  std::vector<std::string> levels;
};

}  // namespace xenoscope
