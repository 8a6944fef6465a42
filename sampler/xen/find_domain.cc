// Looks up a domain by the name or id that a user gives.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {

absl::StatusOr<DomainId> FindDomain(const std::vector<recording::DomainInfo>& domains,
                                    std::string_view name_or_id) {
  using recording::DomainInfo;
  const auto by_name =
      std::ranges::find_if(domains, [&](const DomainInfo& d) { return d.name == name_or_id; });
  if (by_name != domains.end()) return by_name->id;
  uint16_t id = 0;
  const char* const end = name_or_id.data() + name_or_id.size();
  const auto [stopped, error] = std::from_chars(name_or_id.data(), end, id);
  if (error == std::errc() && stopped == end &&
      std::ranges::find(domains, DomainId{id}, &DomainInfo::id) != domains.end()) {
    return DomainId{id};
  }
  std::vector<std::string> known;
  known.reserve(domains.size());
  for (const DomainInfo& domain : domains) {
    known.push_back(fmt::format("{} ({})", domain.id.value, domain.name));
  }
  return NotFoundError("there is no domain '{}'; there are: {}", name_or_id,
                       fmt::join(known, ", "));
}

}  // namespace xenoscope::sampler
