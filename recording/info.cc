#include "recording/info.h"

#include <algorithm>

namespace xenoscope::recording {

const DomainInfo* RecordingInfo::Domain(DomainId id) const {
  const auto found = std::ranges::find(domains, id, &DomainInfo::id);
  return found == domains.end() ? nullptr : &*found;
}

std::string RecordingInfo::NameOf(DomainId id) const {
  const DomainInfo* const domain = Domain(id);
  return domain == nullptr ? std::string() : domain->name;
}

}  // namespace xenoscope::recording
