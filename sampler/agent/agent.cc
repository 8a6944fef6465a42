#include "sampler/agent/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sampler/agent/source_with_threads.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/event_spec.h"
#include "sampler/ftrace/boot_trace.h"
#include "sampler/ftrace/ftrace_source.h"
#include "sampler/ftrace/trace_instance.h"
#include "sampler/perf/perf_counters.h"
#include "sampler/perf/perf_source.h"
#include "sampler/running_processes.h"
#include "sampler/signals.h"
#include "sampler/small_file.h"
#include "sampler/xen/host.h"
#include "sampler/xenoprof/xenoprof_member.h"

namespace xenoscope::sampler {
namespace {

agent::Hello MakeHello(const std::string& program) {
  agent::Hello hello;
  hello.vcpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
  const DomainTsc tsc = ReadDomainTsc();
  hello.tsc_hz = tsc.hz;
  hello.tsc_native = tsc.native;
  hello.program = program;
  utsname names{};
  if (uname(&names) == 0) hello.kernel = names.release;
  return hello;
}

absl::StatusOr<std::unique_ptr<Source>> OpenPerf(std::vector<EventSpec> events,
                                                 const agent::Prepare& how,
                                                 std::shared_ptr<PerfMapWatch> perf_maps,
                                                 bool allow_stacks, uint64_t tsc_hz) {
  if (how.stack_bytes > kMaxStackBytes || how.stack_bytes % sizeof(uint64_t) != 0) {
    return InvalidError("pieces of stacks of {} bytes cannot be recorded", how.stack_bytes);
  }
  PerfRequest perf;
  perf.events = std::move(events);
  perf.call_chains = how.chains;
  perf.stack_bytes = allow_stacks ? how.stack_bytes : 0;
  constexpr size_t kRingPages = 16384;  // 64 MiB: a quarter of what its unit allows it
  perf.most_ring_pages = kRingPages;
  perf.stack_bytes_per_second = StackRate::kBytesPerSecondOfAgent;
  perf.all_stack_bytes = how.all_stack_bytes;
  perf.branch_records = how.branch_records;
  perf.seed = std::random_device()();
  perf.clock_hz = tsc_hz;
  perf.sends_perf_maps = true;
  return PerfSource::Open(
      perf, LinuxPerfCalls(), [] { return ReadRunningProcesses(); }, std::move(perf_maps));
}

absl::StatusOr<std::unique_ptr<Source>> OpenSamples(const agent::Prepare& how,
                                                    std::shared_ptr<PerfMapWatch> perf_maps,
                                                    bool allow_stacks, uint64_t tsc_hz) {
  std::vector<EventSpec> events;
  for (const std::string& text : how.events) {
    XENOSCOPE_ASSIGN_OR_RETURN(EventSpec event, ParseEventSpec(text));
    events.push_back(std::move(event));
  }
  if (how.source == agent::GuestSource::kPerf) {
    return OpenPerf(std::move(events), how, std::move(perf_maps), allow_stacks, tsc_hz);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(auto calls, OpenXenoprofCalls(XenoprofRole::kActive));
  return XenoprofMember::Open(std::move(calls), events, tsc_hz, ReadTsc);
}

absl::StatusOr<std::unique_ptr<Source>> OpenGuestSource(const agent::Prepare& how,
                                                        std::shared_ptr<PerfMapWatch> perf_maps,
                                                        bool allow_stacks, uint64_t tsc_hz) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Source> samples,
                             OpenSamples(how, std::move(perf_maps), allow_stacks, tsc_hz));
  if (!how.threads) return samples;
  // What the kernel of a guest that shuts down does last has to be read before it stops.
  constexpr std::chrono::nanoseconds kShutdownInterval = std::chrono::milliseconds(25);
  auto threads = FtraceSource::Open(
      {.drain_interval = how.shutdown ? kShutdownInterval : FtraceRequest::kUsualInterval,
       .events = how.kernel_events,
       .functions = how.functions,
       .may_have_events = allow_stacks,
       .reads_at_once = how.shutdown,
       .reads_cpu_times = how.cpu_times},
      ReadTsc, [] { return ReadRunningThreads(); });
  if (!threads.ok()) return InContext(threads.status(), "threads");
  return std::make_unique<SourceWithThreads>(std::move(samples), *std::move(threads));
}

absl::StatusOr<PerfCounters> OpenCounters(const std::vector<std::string>& texts) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<EventSpec> events, ParseEventSpecs(texts));
  return PerfCounters::Open(events, CounterScope::kCpus, LinuxPerfCalls());
}

// What waits for the first recording that asks for it.
absl::StatusOr<std::vector<std::byte>> TakeBoot() {
  const std::optional<std::string> root = TraceInstance::FindTracefs();
  if (!root) return PreconditionError("tracefs is not mounted, or not for its agent");
  return TakeBootTrace(*root, ReadSmallFile("/proc/cmdline").value_or(""));
}

}  // namespace

agent::ServerParts AgentParts(bool allow_stacks, const std::string& program) {
  agent::ServerParts parts;
  parts.hello = MakeHello(program);
  parts.open_source = [allow_stacks, hz = parts.hello.tsc_hz](const agent::Prepare& how,
                                                              std::shared_ptr<PerfMapWatch> maps) {
    return OpenGuestSource(how, std::move(maps), allow_stacks, hz);
  };
  parts.open_counters = OpenCounters;
  parts.read_tsc = ReadTsc;
  return parts;
}

absl::Status RunAgent(const AgentSetup& setup) {
  const DomainId allowed = setup.allowed;
  const EndSignals signals;
  const int end = signals.OpenFile(setup.until_killed ? std::optional(SIGINT) : std::nullopt);
  agent::ServerParts parts = AgentParts(setup.allow_stacks, setup.program);
  parts.asks_java_vms = setup.asks_java_vms;
  parts.keep_shared = setup.keep_shared;
  parts.boot_trace = TakeBoot();
  if (parts.boot_trace.ok()) {
    setup.say(fmt::format("took the trace of this kernel's boot, {} bytes, for record --boot",
                          parts.boot_trace->size()));
  }
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<std::unique_ptr<Channel>> channel = OfferVchan(allowed);
    if (!channel.ok()) {
      status = channel.status();
      break;
    }
    setup.say(fmt::format("waiting for a recording of domain {}", allowed.value));
    agent::Server server(**channel, parts);
    const absl::Status served = server.Serve(end);
    if (!served.ok()) setup.say(fmt::format("a recording was refused: {}", Message(served)));
    pollfd ended{end, POLLIN, 0};
    if (poll(&ended, 1, 0) == 1) break;
    if (allowed != kDom0 && server.greeted() && !server.said_bye()) {
      setup.say(fmt::format(
          "the recorder disconnected without a goodbye: domain {} may have ended, and another "
          "domain may get its number; restart the agent when the recorder is back",
          allowed.value));
      break;
    }
    setup.say("a recording has ended");
  }
  if (end >= 0) close(end);
  return status;
}

}  // namespace xenoscope::sampler
