#include "recording/info.h"

#include <algorithm>

namespace xenoscope::recording {

const DomainInfo* RecordingInfo::Domain(DomainId id) const {
  const auto found = std::ranges::find(domains, id, &DomainInfo::id);
  return found == domains.end() ? nullptr : &*found;
}

}  // namespace xenoscope::recording
