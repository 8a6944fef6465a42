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
  std::string path;            // of the file; empty where it is not known
  std::string build_id;        // of the file, hexadecimal; empty where it is not known
  std::vector<Frame> inlined;  // innermost first, the function itself last; empty without lines
};

// The lines at `address`; `space` counts in user mode. `info`, where there is one, has the build-id
// of Xen. The strings of frames live as long as `symbols`.
CodeLines FindCodeLines(symbolizer::DomainSymbols& symbols, const recording::RecordingInfo* info,
                        DomainId domain, Mode mode, AddressSpaceId space, Address address);

}  // namespace xenoscope::profile
