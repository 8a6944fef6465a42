// How this program starts itself once more.
#pragma once

#include <string>
#include <vector>

namespace xenoscope::cli {

// Returns the words that start this program, before its arguments. Where a dynamic loader was
// started to run it (ld.so [OPTION...] PROGRAM, as the portable tarball does), what the kernel
// takes for the program is the loader: then these are the loader, its options and the program.
std::vector<std::string> OwnCommand();

}  // namespace xenoscope::cli
