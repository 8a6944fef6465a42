// The numbers of the hypercalls that are named here (xen/include/public/xen.h, __HYPERVISOR_*, 4.8
// to 4.22). trace/names.h has the names of all.
#pragma once

#include <cstdint>

namespace xenoscope::hypercall {

inline constexpr uint32_t kMmuUpdate = 1;
inline constexpr uint32_t kPlatformOp = 7;
inline constexpr uint32_t kMulticall = 13;
inline constexpr uint32_t kXenVersion = 17;
inline constexpr uint32_t kGrantTableOp = 20;
inline constexpr uint32_t kIret = 23;
inline constexpr uint32_t kVcpuOp = 24;
inline constexpr uint32_t kMmuextOp = 26;
inline constexpr uint32_t kSchedOp = 29;
inline constexpr uint32_t kXenoprofOp = 31;
inline constexpr uint32_t kSysctl = 35;
inline constexpr uint32_t kDomctl = 36;

}  // namespace xenoscope::hypercall
