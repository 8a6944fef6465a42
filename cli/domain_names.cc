#include "cli/domain_names.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/spelling.h"

namespace xenoscope::cli {
namespace {

std::optional<DomainId> ParseNumber(std::string_view text) {
  if (text.starts_with('d')) text.remove_prefix(1);
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return DomainId{number};
}

}  // namespace

absl::StatusOr<DomainId> ChooseDomain(const recording::RecordingInfo* info,
                                      const std::string& text) {
  std::vector<std::string_view> names;
  if (info != nullptr) {
    names.reserve(info->domains.size());
    for (const recording::DomainInfo& domain : info->domains) {
      if (domain.name == text) return domain.id;
      names.push_back(domain.name);
    }
  }
  if (const auto number = ParseNumber(text)) return *number;
  if (info == nullptr) {
    return NotFoundError(
        "there is no domain '{}': a bare trace has no names; give the domain's number", text);
  }
  return NotFoundError("there is no domain '{}' in the recording; it has {}{}", text,
                       fmt::join(names, ", "), SpellingHint(text, names));
}

absl::StatusOr<std::vector<DomainId>> ChooseDomains(const recording::RecordingInfo* info,
                                                    const std::vector<std::string>& texts) {
  std::vector<DomainId> domains;
  domains.reserve(texts.size());
  for (const std::string& text : texts) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseDomain(info, text));
    domains.push_back(domain);
  }
  return domains;
}

void WarnOfAbsentDomains(std::span<const DomainId> chosen, const std::set<DomainId>& present,
                         std::string_view what) {
  constexpr size_t kMostNamed = 16;
  std::vector<uint16_t> others;
  for (const DomainId domain : present) {
    if (others.size() < kMostNamed) others.push_back(domain.value);
  }
  for (const DomainId domain : chosen) {
    if (present.contains(domain)) continue;
    fmt::print(stderr, "xenoscope: there are no {} of domain {}, but of {}{}\n", what, domain.value,
               fmt::join(others, ", "), present.size() > kMostNamed ? ", ..." : "");
  }
}

}  // namespace xenoscope::cli
