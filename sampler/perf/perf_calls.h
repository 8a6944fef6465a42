// The calls of the perf source to Linux (perf_event_open(2)), as an interface, so that tests can
// take the kernel's place.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"

namespace xenoscope::sampler {

// A mapped ring: the page that describes it, then a power of two of pages of records.
struct PerfMapping {
  perf_event_mmap_page* page = nullptr;
  const std::byte* data = nullptr;
  size_t size = 0;  // bytes of records
};

// The count of a counter, and, since Linux 6.0, the number of its samples that found the ring full.
struct PerfCount {
  uint64_t value = 0;
  std::optional<uint64_t> lost;
};

// The count of a counter with the times that it was to count and did count, in ns.
struct PerfTimedCount {
  uint64_t value = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

// Modes of Xen's vPMU, of PerfCalls::VpmuMode.
inline constexpr std::string_view kVpmuOff = "off";
inline constexpr std::string_view kVpmuHv = "hv";
inline constexpr std::string_view kVpmuAll = "all";

class PerfCalls {
 public:
  virtual ~PerfCalls() = default;
  // Calls perf_event_open(2); -errno when it fails. `leader` is the file descriptor of the event
  // that leads the group, or kNoLeader.
  static constexpr int kNoLeader = -1;
  virtual int Open(const perf_event_attr& attributes, int pid, int cpu, int leader) = 0;
  virtual void Close(int fd) = 0;
  // Maps the ring of `fd`, with `pages` pages of records; -errno in `error` when it fails.
  virtual PerfMapping Map(int fd, size_t pages, int& error) = 0;
  virtual void Unmap(const PerfMapping& mapping) = 0;
  virtual int Enable(int fd, bool on) = 0;
  virtual int SetPeriod(int fd, uint64_t period) = 0;
  virtual int RedirectTo(int fd, int ring) = 0;
  virtual int Id(int fd, uint64_t& id) = 0;
  virtual int Read(int fd, PerfCount& count) = 0;
  // Reads a counter that was opened with PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING.
  virtual int ReadTimed(int fd, PerfTimedCount& count) = 0;
  // Makes a record (PERF_RECORD_COMM) of this thread in the ring of the CPU that it runs on.
  virtual void Mark() = 0;
  [[nodiscard]] virtual uint32_t OwnTid() const = 0;
  virtual Tsc ReadTsc() = 0;
  // Returns the numbers of the CPUs that are online.
  virtual std::vector<uint32_t> OnlineCpus() = 0;
  // Returns what Xen lets Linux count (/sys/hypervisor/pmu/pmu_mode): "off", "self", "hv": dom0
  // also Xen, "all": dom0 all domains; empty where there is no such file.
  virtual std::string VpmuMode() = 0;
  // Returns whether this Linux is in a PV domain of Xen.
  virtual bool IsInPvDomain() = 0;
  // Returns how many branches a processor records, where Linux says so.
  virtual std::optional<uint32_t> BranchRecords() = 0;
  // Returns the value of kernel.perf_event_NAME, where it is a number.
  virtual std::optional<int64_t> Setting(const char* name) = 0;
};

std::unique_ptr<PerfCalls> LinuxPerfCalls();

// Returns why opening or mapping an event failed with `error` (an errno), and what to do. `what`
// names the event.
absl::Status PerfError(PerfCalls& calls, int error, const char* what);

}  // namespace xenoscope::sampler
