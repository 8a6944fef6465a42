#include "sampler/perf/perf_calls.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/error.h"
#include "sampler/small_file.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {
namespace {

// Returns 0, or -errno.
int Checked(long result) { return result < 0 ? -errno : 0; }

class LinuxCalls final : public PerfCalls {
 public:
  int Open(const perf_event_attr& attributes, int pid, int cpu, int leader) override {
    const long fd =
        syscall(SYS_perf_event_open, &attributes, pid, cpu, leader, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : static_cast<int>(fd);
  }
  void Close(int fd) override { close(fd); }

  PerfMapping Map(int fd, size_t pages, int& error) override {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const at =
        mmap(nullptr, (1 + pages) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, /*offset=*/0);
    error = at == MAP_FAILED ? -errno : 0;
    if (error != 0) return {};
    auto* const bytes = static_cast<std::byte*>(at);
    return {static_cast<perf_event_mmap_page*>(at), bytes + page, pages * page};
  }
  void Unmap(const PerfMapping& mapping) override {
    munmap(mapping.page, mapping.size + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  }

  int Enable(int fd, bool on) override {
    return Checked(ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0));
  }
  int SetPeriod(int fd, uint64_t period) override {
    return Checked(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
  }
  int RedirectTo(int fd, int ring) override {
    return Checked(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring));
  }
  int Id(int fd, uint64_t& id) override { return Checked(ioctl(fd, PERF_EVENT_IOC_ID, &id)); }
  int Read(int fd, PerfCount& count) override {
    std::array<uint64_t, 2> words{};
    const ssize_t size = read(fd, words.data(), sizeof words);
    if (size < 0) return -errno;
    count.value = words[0];
    if (size == sizeof words) count.lost = words[1];
    return 0;
  }
  int ReadTimed(int fd, PerfTimedCount& count) override {
    std::array<uint64_t, 3> words{};
    const ssize_t size = read(fd, words.data(), sizeof words);
    if (size < 0) return -errno;
    if (size != sizeof words) return -EIO;
    count = {words[0], words[1], words[2]};
    return 0;
  }

  void Mark() override {
    std::array<char, 16> name{};  // its own name, so that nothing changes
    if (prctl(PR_GET_NAME, name.data()) == 0) prctl(PR_SET_NAME, name.data());
  }
  uint32_t OwnTid() const override { return static_cast<uint32_t>(gettid()); }
  Tsc ReadTsc() override { return sampler::ReadTsc(); }

  // The list has the form "0-3,8".
  std::vector<uint32_t> OnlineCpus() override {
    constexpr uint32_t kMaxCpus = 1 << 16;
    std::vector<uint32_t> cpus;
    const std::string text = ReadSmallFile("/sys/devices/system/cpu/online").value_or("0");
    for (const auto range : absl::StrSplit(text, ',')) {
      const std::vector<std::string> ends = absl::StrSplit(range, '-');
      uint32_t first = 0;
      uint32_t last = 0;
      if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last))
        continue;
      for (uint32_t cpu = first; cpu <= last && cpu < kMaxCpus; ++cpu) cpus.push_back(cpu);
    }
    return cpus;
  }

  std::string VpmuMode() override {
    return ReadSmallFile("/sys/hypervisor/pmu/pmu_mode").value_or("");
  }
  bool IsInPvDomain() override { return ReadSmallFile("/sys/hypervisor/guest_type") == "PV"; }
  std::optional<uint32_t> BranchRecords() override {
    // Processors with two kinds of cores have a directory for each; both record as many.
    for (const char* const pmu : {"cpu", "cpu_core"}) {
      const auto text =
          ReadSmallFile(fmt::format("/sys/bus/event_source/devices/{}/caps/branches", pmu));
      uint32_t count = 0;
      if (text && absl::SimpleAtoi(*text, &count)) return count;
    }
    return std::nullopt;
  }
  std::optional<int64_t> Setting(const char* name) override {
    const auto text = ReadSmallFile(fmt::format("/proc/sys/kernel/perf_event_{}", name));
    int64_t value = 0;
    if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
    return value;
  }
};

}  // namespace

std::unique_ptr<PerfCalls> LinuxPerfCalls() { return std::make_unique<LinuxCalls>(); }

absl::Status PerfError(PerfCalls& calls, int error, const char* what) {
  switch (error) {
    case EACCES:
    case EPERM:
      return PermissionError(
          "Linux does not let this user sample the whole system (kernel.perf_event_paranoid is "
          "{}): record as root, or run `sysctl kernel.perf_event_paranoid=-1`",
          calls.Setting("paranoid").value_or(2));
    case ENOSYS:
      return UnimplementedError("this Linux was built without perf events (CONFIG_PERF_EVENTS)");
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return UnimplementedError(
          "event {}: this machine cannot count it; `xenoscope events` lists those that it can, and "
          "cpu-clock always works",
          what);
    case EINVAL:
      return InvalidError(
          "event {}: Linux refuses it; more than {} samples a second "
          "(kernel.perf_event_max_sample_rate) and groups of more events than there are counters "
          "are "
          "refused too",
          what, calls.Setting("max_sample_rate").value_or(100000));
    case EMFILE:
    case ENFILE:
      return ExhaustedError(
          "too many open files (one for each event and CPU): run `ulimit -n 65536`, or give fewer "
          "-e");
    case ENOMEM:
      return ExhaustedError("there is no memory for the rings of perf events");
    case EBUSY:
      return PreconditionError("event {}: the counters are taken by another profiler", what);
    default:
      return ErrnoError(error, "event {}", what);
  }
}

}  // namespace xenoscope::sampler
