#include "recording/info.h"

#include <algorithm>

namespace xenoscope::recording {

const DomainInfo* RecordingInfo::Domain(DomainId id) const {
  const auto found = std::ranges::find(domains, id, &DomainInfo::id);
  return found == domains.end() ? nullptr : &*found;
}

const SymbolFile* RecordingInfo::Symbols(SymbolFile::Kind kind, DomainId domain) const {
  const auto found = std::ranges::find_if(symbols, [kind, domain](const SymbolFile& file) {
    return file.kind == kind && file.domain == domain;
  });
  return found == symbols.end() ? nullptr : &*found;
}

std::string RecordingInfo::NameOf(DomainId id) const {
  const DomainInfo* const domain = Domain(id);
  return domain == nullptr ? std::string() : domain->name;
}

}  // namespace xenoscope::recording
