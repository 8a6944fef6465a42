#include "base/ids.h"

#include <fmt/format.h>

namespace xenoscope {

std::string ToString(DomainId domain) {
  if (domain == kIdleDomain) return "idle";
  if (domain == kDomXen) return "xen";
  return fmt::format("d{}", domain.value);
}

std::string DomainLabel(DomainId domain, std::string_view name) {
  return name.empty() ? ToString(domain) : std::string(name);
}

std::string ToString(VcpuRef ref) {
  if (IsIdle(ref)) return fmt::format("idle/{}", ref.vcpu.value);
  return fmt::format("d{}v{}", ref.domain.value, ref.vcpu.value);
}

}  // namespace xenoscope
