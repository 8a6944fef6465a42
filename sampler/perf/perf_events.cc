#include "sampler/perf/perf_events.h"

#include <perfmon/pfmlib_perf_event.h>

#include <array>

#include "base/error.h"
#include "sampler/libpfm.h"
#include "sampler/perf/perf_records.h"
#include "sampler/pmu_events.h"

namespace xenoscope::sampler {
namespace {

constexpr uint64_t kDefaultHz = 1000;
// The limit of Linux's timer in ns (kernel/events/core.c, perf_swevent_init_hrtimer).
constexpr uint64_t kShortestTimerPeriod = 10'000;

constexpr std::array<LinuxEvent, 9> kLinuxEvents{{
    {"cpu-clock", PERF_COUNT_SW_CPU_CLOCK, "Time, by Linux's timer, without the idle task"},
    {"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "Switches from thread to thread"},
    {"cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "Moves of a thread to another CPU"},
    {"page-faults", PERF_COUNT_SW_PAGE_FAULTS, "Page faults"},
    {"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, "Page faults that needed no disk"},
    {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, "Page faults that had to wait for a disk"},
    {"alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS, "Unaligned accesses that trapped"},
    {"emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS, "Instructions that Linux emulated"},
    {"cgroup-switches", PERF_COUNT_SW_CGROUP_SWITCHES, "Switches to a thread of another cgroup"},
}};

bool IsTimer(const perf_event_attr& attributes) {
  return attributes.type == PERF_TYPE_SOFTWARE && (attributes.config == PERF_COUNT_SW_CPU_CLOCK ||
                                                   attributes.config == PERF_COUNT_SW_TASK_CLOCK);
}

absl::Status Encode(const EventSpec& spec, perf_event_attr& attributes) {
  if (spec.name == "cycles" || spec.name == "cpu-cycles") {
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    return absl::OkStatus();
  }
  for (const LinuxEvent& event : kLinuxEvents) {
    if (event.name != spec.name) continue;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = event.config;
    return absl::OkStatus();
  }
  if (const auto code = RawCode(spec.name)) {
    attributes.type = PERF_TYPE_RAW;
    attributes.config = *code;
    return absl::OkStatus();
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const Libpfm libpfm, Libpfm::Start());
  pfm_perf_encode_arg_t argument{};
  argument.size = sizeof argument;
  argument.attr = &attributes;
  const int result = libpfm.os_event_encoding(spec.name.c_str(), PFM_PLM0 | PFM_PLM3 | PFM_PLMH,
                                              PFM_OS_PERF_EVENT, &argument);
  if (result == PFM_SUCCESS) return absl::OkStatus();
  return NotFoundError("event '{}': {}{}; `xenoscope events` lists the names", spec.name,
                       libpfm.error_text(result), SuggestEvent(spec.name));
}

}  // namespace

std::span<const LinuxEvent> LinuxEvents() { return kLinuxEvents; }

absl::StatusOr<PerfEvent> ResolvePerfEvent(const EventSpec& spec) {
  PerfEvent event;
  event.name = spec.name;
  XENOSCOPE_RETURN_IF_ERROR(Encode(spec, event.attributes));
  perf_event_attr& attributes = event.attributes;
  event.is_timer = IsTimer(attributes);
  attributes.exclude_user = spec.user ? 0 : 1;
  attributes.exclude_kernel = spec.kernel ? 0 : 1;
  attributes.exclude_hv = spec.hypervisor ? 0 : 1;
  event.modes = {spec.user, spec.kernel, spec.hypervisor};
  attributes.sample_period = 0;
  if (spec.period) {
    attributes.sample_period = *spec.period;
  } else if (event.is_timer) {
    attributes.sample_period = kNanosecondsInSecond / spec.hz.value_or(kDefaultHz);
  } else {
    attributes.freq = 1;
    attributes.sample_freq = spec.hz.value_or(kDefaultHz);
  }
  if (event.is_timer) {
    if (attributes.sample_period < kShortestTimerPeriod) {
      return InvalidError("event {}: the period must be at least {} ns", spec.name,
                          kShortestTimerPeriod);
    }
    // The machine is idle while the idle task waits.
    attributes.exclude_idle = 1;
  }
  return event;
}

bool CountersCount(PerfCalls& calls) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_CPU_CYCLES;
  attributes.exclude_hv = 1;
  const int fd = calls.Open(attributes, /*pid=*/0, /*cpu=*/-1, PerfCalls::kNoLeader);
  if (fd < 0) return false;
  constexpr Cycles kEnough = 1'000'000;
  const Tsc begin = calls.ReadTsc();
  while (calls.ReadTsc() - begin < kEnough) {
  }
  PerfCount count;
  const bool counts = calls.Read(fd, count) == 0 && count.value > 0;
  calls.Close(fd);
  return counts;
}

bool RecordsCalls(PerfCalls& calls) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_CPU_CYCLES;
  attributes.sample_period = kDefaultHz;
  attributes.sample_type = PERF_SAMPLE_BRANCH_STACK;
  attributes.branch_sample_type = kPerfBranchesOfCalls;
  attributes.exclude_hv = 1;
  attributes.disabled = 1;
  const int fd = calls.Open(attributes, /*pid=*/0, /*cpu=*/-1, PerfCalls::kNoLeader);
  if (fd < 0) return false;
  calls.Close(fd);
  return true;
}

PerfEvent DefaultPerfEvent(PerfCalls& calls) {
  EventSpec spec;
  spec.name = CountersCount(calls) ? "cycles" : "cpu-clock";
  return *ResolvePerfEvent(spec);  // both are known without a lookup
}

absl::StatusOr<bool> ProbePerf(PerfCalls& calls) {
  EventSpec spec;
  spec.name = "cpu-clock";
  XENOSCOPE_ASSIGN_OR_RETURN(PerfEvent event, ResolvePerfEvent(spec));
  event.attributes.size = sizeof event.attributes;
  event.attributes.disabled = 1;
  const std::vector<uint32_t> cpus = calls.OnlineCpus();
  const int cpu = cpus.empty() ? 0 : static_cast<int>(cpus.front());
  const int fd = calls.Open(event.attributes, /*pid=*/-1, cpu, PerfCalls::kNoLeader);
  if (fd < 0) return PerfError(calls, -fd, "cpu-clock");
  calls.Close(fd);
  return CountersCount(calls);
}

}  // namespace xenoscope::sampler
