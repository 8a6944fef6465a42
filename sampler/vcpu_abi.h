// What of the hypercall __HYPERVISOR_domctl the vcpu source uses, as Xen defines it
// (xen/include/public/domctl.h, Xen 4.8 to 4.22, x86-64). The version that Xen wants to hear
// changes from release to release; the layout of these operations has not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xenoscope::sampler {

inline constexpr int kDomctlHypercall = 36;
// XEN_DOMCTL_INTERFACE_VERSION of Xen 4.8, and what later ones may reach.
inline constexpr uint32_t kFirstDomctlVersion = 0x0b;
inline constexpr uint32_t kLastDomctlVersion = 0x3f;

enum class DomctlOp : uint32_t {
  kGetDomainInfo = 5,
  kGetVcpuContext = 13,
  kGetVcpuInfo = 14,
};

struct DomctlVcpuContext {
  uint32_t vcpu;     // in
  uint64_t context;  // in: address of a vcpu_guest_context
};
static_assert(sizeof(DomctlVcpuContext) == 16);

struct DomctlVcpuInfo {
  uint32_t vcpu;      // in
  uint8_t online;     // out, as all that follows
  uint8_t blocked;    // waits for an event
  uint8_t running;    // on its pCPU now
  uint64_t cpu_time;  // ns
  uint32_t cpu;
};
static_assert(offsetof(DomctlVcpuInfo, cpu_time) == 8);

struct Domctl {
  DomctlOp op;
  uint32_t version;
  uint16_t domain;
  uint16_t padding[3];
  union {
    DomctlVcpuContext context;
    DomctlVcpuInfo info;
    std::byte size[128];
  } u;
};
static_assert(offsetof(Domctl, u) == 16 && sizeof(Domctl) == 144);

}  // namespace xenoscope::sampler
