// Domains, vCPUs and pCPUs, as types that cannot be mistaken for each other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace xenoscope {

// A Xen domain (domid_t of xen/include/public/xen.h).
struct DomainId {
  uint16_t value = 0;
  constexpr auto operator<=>(const DomainId&) const = default;
};

// Ids with a special meaning (xen/include/public/xen.h; the idle domain as the trace shows it).
inline constexpr DomainId kDom0{0};
inline constexpr DomainId kFirstReservedDomain{0x7ff0};
inline constexpr DomainId kDomSelf{0x7ff0};
inline constexpr DomainId kDomXen{0x7ff2};
inline constexpr DomainId kIdleDomain{0x7fff};

struct VcpuId {
  uint32_t value = 0;
  constexpr auto operator<=>(const VcpuId&) const = default;
};

struct PcpuId {
  uint32_t value = 0;
  constexpr auto operator<=>(const PcpuId&) const = default;
};

// One vCPU of one domain: dXvY.
struct VcpuRef {
  DomainId domain;
  VcpuId vcpu;
  constexpr auto operator<=>(const VcpuRef&) const = default;
};

[[nodiscard]] inline constexpr bool IsIdle(VcpuRef ref) { return ref.domain == kIdleDomain; }

// Returns how reports name a domain that has no name: "d3", "idle", "xen".
[[nodiscard]] std::string ToString(DomainId domain);
// Returns the domain's name, or ToString(domain) if `name` is empty.
[[nodiscard]] std::string DomainLabel(DomainId domain, std::string_view name);
// Returns "d3v1", or "idle/0" for an idle vCPU.
[[nodiscard]] std::string ToString(VcpuRef ref);

}  // namespace xenoscope

template <>
struct std::hash<xenoscope::DomainId> {
  size_t operator()(xenoscope::DomainId id) const noexcept { return id.value; }
};

template <>
struct std::hash<xenoscope::VcpuRef> {
  size_t operator()(const xenoscope::VcpuRef& ref) const noexcept {
    return std::hash<uint64_t>{}((uint64_t{ref.domain.value} << 32) | ref.vcpu.value);
  }
};

// Lets absl's hash containers take the ids too.
namespace xenoscope {
template <typename H>
H AbslHashValue(H h, const DomainId& id) {
  return H::combine(std::move(h), id.value);
}
template <typename H>
H AbslHashValue(H h, const VcpuRef& ref) {
  return H::combine(std::move(h), ref.domain.value, ref.vcpu.value);
}
}  // namespace xenoscope
