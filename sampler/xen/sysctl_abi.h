// The part of the hypercall __HYPERVISOR_sysctl that trace buffers, the console, the idle times of
// pCPUs and the list of livepatches use, as Xen defines it (xen/include/public/sysctl.h, Xen 4.8
// to 4.22, x86-64). Xen requires an interface version that changes from release to release; the
// layout of these operations, as far as it is used, has not changed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xenoscope::sampler {

// XEN_SYSCTL_INTERFACE_VERSION of Xen 4.8, and a limit for later ones.
inline constexpr uint32_t kFirstSysctlVersion = 0x0e;
inline constexpr uint32_t kLastSysctlVersion = 0x3f;

enum class SysctlOp : uint32_t {
  kReadConsole = 1,
  kTraceBuffers = 2,
  kDebugKeys = 7,
  kGetCpuInfo = 8,
  kLivepatch = 27,
};

struct SysctlReadConsole {
  uint8_t clear;        // in: 0: what was read stays
  uint8_t incremental;  // in: 1: begin at `index`, if the ring still has it
  uint8_t padding[2];
  uint32_t index;   // in: start of the read; out: start of the next read
  uint64_t buffer;  // in: address
  uint32_t count;   // in: bytes of the buffer; out: bytes read
};
static_assert(sizeof(SysctlReadConsole) == 24);

// XEN_SYSCTL_tbuf_op.
struct SysctlTraceBuffers {
  uint32_t command;  // kTraceBuffersGetInfo or kTraceBuffersDisable
  uint32_t padding;
  uint64_t cpu_mask[2];
  uint32_t event_mask;
  uint32_t padding1;
  uint64_t info_frame;  // out: frame of struct t_info; 0: there are no buffers
  uint32_t info_size;   // out: size of struct t_info in bytes
};
inline constexpr uint32_t kTraceBuffersGetInfo = 0;
inline constexpr uint32_t kTraceBuffersDisable = 5;
static_assert(offsetof(SysctlTraceBuffers, info_frame) == 32);

struct SysctlDebugKeys {
  uint64_t keys;  // in: address
  uint32_t count;
};
static_assert(sizeof(SysctlDebugKeys) == 16);

struct SysctlGetCpuInfo {
  uint32_t max_cpus;  // in: how many numbers fit
  uint32_t padding;
  uint64_t times;  // in: address; out: a u64 for each pCPU, the ns that it was idle
  uint32_t count;  // out: the number of pCPUs
};
static_assert(sizeof(SysctlGetCpuInfo) == 24 && offsetof(SysctlGetCpuInfo, count) == 16);

// XEN_SYSCTL_LIVEPATCH_LIST, used only for the number of livepatches.
struct SysctlLivepatchList {
  uint32_t operation;  // kLivepatchList
  uint32_t flags;      // 0
  uint32_t version;    // out: changes whenever a livepatch comes or goes
  uint32_t index;      // in: 0
  uint32_t count;      // in: 0; out: number of livepatches
  uint32_t padding;    // 0
};
inline constexpr uint32_t kLivepatchList = 2;
static_assert(offsetof(SysctlLivepatchList, version) == 8);

struct Sysctl {
  SysctlOp op;
  uint32_t version;
  union {
    SysctlReadConsole console;
    SysctlTraceBuffers trace_buffers;
    SysctlDebugKeys keys;
    SysctlGetCpuInfo cpus;
    SysctlLivepatchList livepatches;
    std::byte size[128];
  } u;
};
static_assert(offsetof(Sysctl, u) == 8 && sizeof(Sysctl) == 136);

}  // namespace xenoscope::sampler
