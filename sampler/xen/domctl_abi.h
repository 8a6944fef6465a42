// The part of the hypercall __HYPERVISOR_domctl that polling guests and weights use, as Xen defines
// it (xen/include/public/domctl.h, Xen 4.8 to 4.22, x86-64). Xen requires an interface version that
// changes from release to release; the layout of these operations has not changed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xenoscope::sampler {

// XEN_DOMCTL_INTERFACE_VERSION of Xen 4.8, and a limit for later ones.
inline constexpr uint32_t kFirstDomctlVersion = 0x0b;
inline constexpr uint32_t kLastDomctlVersion = 0x3f;

enum class DomctlOp : uint32_t {
  kGetDomainInfo = 5,
  kGetVcpuContext = 13,
  kGetVcpuInfo = 14,
  kScheduler = 16,
  kGetVcpuAffinity = 25,
};

struct DomctlDomainInfo {
  uint16_t domain;  // out, as all fields; Xen before 4.18 may describe the next domain that exists
  uint16_t padding;
  uint32_t flags;
  uint64_t pages_and_time[7];
  uint32_t online_vcpus;
  uint32_t last_vcpu;
};
static_assert(offsetof(DomctlDomainInfo, online_vcpus) == 64);
inline constexpr uint32_t kDomainDying = 1U << 0;
inline constexpr uint32_t kDomainShutdown = 1U << 2;
inline constexpr uint32_t kDomainPaused = 1U << 3;
inline constexpr uint32_t kDomainShutdownShift = 16;  // shift of the reason, which has 8 bits

struct DomctlVcpuContext {
  uint32_t vcpu;     // in: number of the vCPU
  uint64_t context;  // in: address of a vcpu_guest_context
};
static_assert(sizeof(DomctlVcpuContext) == 16);

struct DomctlVcpuInfo {
  uint32_t vcpu;      // in: number of the vCPU
  uint8_t online;     // out, as all fields below
  uint8_t blocked;    // whether it waits for an event
  uint8_t running;    // whether it is on its pCPU now
  uint64_t cpu_time;  // time that it ran, in ns
  uint32_t cpu;
};
static_assert(offsetof(DomctlVcpuInfo, cpu_time) == 8);

struct DomctlBitmap {
  uint64_t bits;  // in: address
  uint32_t count;
  uint32_t padding;
};
struct DomctlVcpuAffinity {
  uint32_t vcpu;   // in: number of the vCPU
  uint32_t flags;  // in: kHardAffinity
  DomctlBitmap hard;
  DomctlBitmap soft;
};
static_assert(sizeof(DomctlVcpuAffinity) == 40);
inline constexpr uint32_t kHardAffinity = 1U << 0;

// What credit and credit2 know of a domain, which look the same.
struct DomctlScheduler {
  uint32_t scheduler;  // in: XEN_SCHEDULER_*; Xen refuses all but that of the domain (EINVAL)
  uint32_t command;    // in: kPutScheduling or kGetScheduling
  uint16_t weight;
  uint16_t cap;  // percent of a pCPU; 0: none
  uint32_t rest[3];
};
static_assert(sizeof(DomctlScheduler) == 24 && offsetof(DomctlScheduler, weight) == 8);
inline constexpr uint32_t kPutScheduling = 0;
inline constexpr uint32_t kGetScheduling = 1;

struct Domctl {
  DomctlOp op;
  uint32_t version;
  uint16_t domain;
  uint16_t padding[3];
  union {
    DomctlDomainInfo domain;
    DomctlVcpuContext context;
    DomctlVcpuInfo info;
    DomctlVcpuAffinity affinity;
    DomctlScheduler scheduler;
    std::byte size[128];
  } u;
};
static_assert(offsetof(Domctl, u) == 16 && sizeof(Domctl) == 144);

}  // namespace xenoscope::sampler
