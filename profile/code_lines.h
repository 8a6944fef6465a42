// The file and lines of the code at an address.
#pragma once

#include <string>
#include <vector>

#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/resolver.h"

namespace xenoscope::recording {
struct RecordingInfo;
}
namespace xenoscope::symbolizer {
class DomainSymbols;
}

namespace xenoscope::profile {

struct CodeLines {
  std::string path;      // path of the file; empty where it is not known
  std::string build_id;  // build-id of the file, hexadecimal; empty where it is not known
  std::vector<Frame>
      inlined;  // frames, innermost first, the function itself last; empty without lines
};

// Returns the names of the inlined functions among frames that begin with the innermost one and end
// with the function that holds the code.
std::vector<std::string> InlinedFunctions(const std::vector<Frame>& frames);

// Returns the lines at `address`; `space` counts in user mode. `info`, if not null, has the
// build-id of Xen.
CodeLines FindCodeLines(symbolizer::DomainSymbols& symbols, const recording::RecordingInfo* info,
                        DomainId domain, Mode mode, AddressSpaceId space, Address address);

}  // namespace xenoscope::profile
