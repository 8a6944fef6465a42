// The hypercall __HYPERVISOR_xenoprof_op as Xen defines it (xen/include/public/xenoprof.h, Xen 4.7
// to 4.21, x86-64), declared here so that it can be tested where there is no Xen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace xenoscope::sampler {

enum class XenoprofOp : int {
  kInit = 0,
  kResetActiveList = 1,
  kResetPassiveList = 2,
  kSetActive = 3,
  kSetPassive = 4,
  kReserveCounters = 5,
  kCounter = 6,
  kSetupEvents = 7,
  kEnableVirq = 8,
  kStart = 9,
  kStop = 10,
  kDisableVirq = 11,
  kReleaseCounters = 12,
  kShutdown = 13,
  kGetBuffer = 14,
  kSetBacktrace = 15,
};

// MAX_OPROF_DOMAINS: limit of active domains, dom0 included; and of passive ones
inline constexpr size_t kMaxDomains = 25;

struct XenoprofInit {
  int32_t num_events = 0;  // out: number of counters
  int32_t is_primary = 0;  // out: 1 in the hardware domain
  std::array<char, 64> cpu_type{};
};
static_assert(sizeof(XenoprofInit) == 72);

struct XenoprofGetBuffer {
  int32_t max_samples = 0;  // in: samples of one vCPU; out: the number granted
  int32_t nbuf = 0;         // out: number of vCPUs
  int32_t bufsize = 0;      // out: size of one vCPU's buffer, in bytes
  uint32_t padding = 0;
  uint64_t buf_gmaddr = 0;  // out: machine address, for a PV domain
};
static_assert(sizeof(XenoprofGetBuffer) == 24);

struct XenoprofPassive {
  uint16_t domain_id = 0;
  uint16_t padding0 = 0;
  int32_t max_samples = 0;
  int32_t nbuf = 0;
  int32_t bufsize = 0;
  uint64_t buf_gmaddr = 0;
};
static_assert(sizeof(XenoprofPassive) == 24);

struct XenoprofCounter {
  uint32_t ind = 0;
  uint32_t padding0 = 0;
  uint64_t count = 0;
  uint32_t enabled = 0;
  uint32_t event = 0;
  uint32_t hypervisor = 0;
  uint32_t kernel = 0;
  uint32_t user = 0;
  uint32_t padding1 = 0;
  uint64_t unit_mask = 0;
};
static_assert(sizeof(XenoprofCounter) == 48);

struct XenoprofEntry {
  uint64_t eip;
  uint8_t mode;   // 0 user, 1 kernel, 2 Xen
  uint8_t event;  // index of the counter
  std::array<uint8_t, 6> padding;
};
static_assert(sizeof(XenoprofEntry) == 16);

// The eip and the event of an entry that begins a call chain.
inline constexpr uint64_t kEscapeCode = ~uint64_t{0};
inline constexpr uint8_t kTraceBegin = 1;

// The shared buffer of one vCPU: this header, then event_size entries from kEntriesOffset on. Xen
// writes event_head and the counters, the reader event_tail.
struct XenoprofBuffer {
  uint32_t event_head;
  uint32_t event_tail;
  uint32_t event_size;
  uint32_t vcpu_id;
  uint64_t xen_samples;
  uint64_t kernel_samples;
  uint64_t user_samples;
  uint64_t lost_samples;
};
inline constexpr size_t kEntriesOffset = 48;
static_assert(sizeof(XenoprofBuffer) == kEntriesOffset);

}  // namespace xenoscope::sampler
