// What the perf source asks of Linux (perf_event_open(2)), behind an interface, so that tests can
// be the kernel.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"

namespace xenoscope::sampler {

// One ring as it is mapped: the page that describes it, then a power of two of pages of records.
struct PerfMapping {
  perf_event_mmap_page* page = nullptr;
  const std::byte* data = nullptr;
  size_t size = 0;  // of the data
};

// What a counter counted, and, since Linux 6.0, how many of its samples found the ring full.
struct PerfCount {
  uint64_t value = 0;
  std::optional<uint64_t> lost;
};

class PerfCalls {
 public:
  virtual ~PerfCalls() = default;
  // perf_event_open(2); -errno when it fails.
  virtual int Open(const perf_event_attr& attributes, int pid, int cpu) = 0;
  virtual void Close(int fd) = 0;
  // The ring of `fd`, of `pages` pages of records; -errno in `error` when it fails.
  virtual PerfMapping Map(int fd, size_t pages, int& error) = 0;
  virtual void Unmap(const PerfMapping& mapping) = 0;
  virtual int Enable(int fd, bool on) = 0;
  virtual int SetPeriod(int fd, uint64_t period) = 0;
  virtual int RedirectTo(int fd, int ring) = 0;
  virtual int Id(int fd, uint64_t& id) = 0;
  virtual int Read(int fd, PerfCount& count) = 0;
  // Makes a record (PERF_RECORD_COMM) of this thread in the rings of the CPU where it runs.
  virtual void Mark() = 0;
  virtual uint32_t OwnTid() const = 0;
  virtual Tsc ReadTsc() = 0;
  // CPUs that are online, by number.
  virtual std::vector<uint32_t> OnlineCpus() = 0;
  // What Xen lets Linux count (/sys/hypervisor/pmu/pmu_mode): "off", "self", "hv": dom0 Xen too,
  // "all": dom0 everybody; empty where there is no such thing.
  virtual std::string VpmuMode() = 0;
  // What kernel.perf_event_NAME says, where it says a number.
  virtual std::optional<int64_t> Setting(const char* name) = 0;
};

std::unique_ptr<PerfCalls> LinuxPerfCalls();

// Why `error` (an errno) came of opening or mapping an event, and what to do. `what` names the
// event.
absl::Status PerfError(PerfCalls& calls, int error, const char* what);

}  // namespace xenoscope::sampler
