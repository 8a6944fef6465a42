#include "cli/record_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace xenoscope::cli {
namespace {

using recording::SymbolFile;

constexpr const char* kGroup = "What is recorded";

constexpr std::string_view kTraceOnly = "trace";  // of --source

[[noreturn]] void ThrowInvalid(const std::string& option, const std::string& what) {
  throw CLI::ValidationError(option, what);
}

uint32_t ParseClock(const std::string& text) {
  constexpr std::string_view kHpet = "hpet:";
  uint32_t hz = 0;
  if (text.starts_with(kHpet)) {
    const char* const begin = text.data() + kHpet.size();
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(begin, end, hz);
    if (error == std::errc() && stopped == end && hz > 0) return hz;
  }
  ThrowInvalid("--clock", fmt::format("'{}' is neither pmu nor hpet:HZ", text));
}

std::vector<sampler::EventSpec> ParseEvents(const std::string& option,
                                            const std::vector<std::string>& texts) {
  std::vector<sampler::EventSpec> events;
  for (const std::string& text : texts) {
    auto event = sampler::ParseEventSpec(text);
    if (!event.ok()) ThrowInvalid(option, std::string(Message(event.status())));
    events.push_back(*std::move(event));
  }
  return events;
}

// What agents are asked for, as it was written: only they know which events their guests have.
std::vector<std::string> ParseAgentEvents(const RecordOptions& options) {
  if (options.agent_events.empty()) return options.events;
  const std::string option = "--agent-event";
  ParseEvents(option, options.agent_events);
  if (options.active.empty())
    ThrowInvalid(option, "wants --active: the domains whose agents sample by it");
  if (options.agent_source == "xenoprof") {
    ThrowInvalid(option, "of --agent-source xenoprof the events are dom0's: name them with -e");
  }
  return options.agent_events;
}

sampler::SampleRequest ParseSampling(const RecordOptions& options) {
  sampler::SampleRequest samples = options.samples;
  samples.call_chains = samples.call_chains || !options.call_graph.empty();
  if (options.source == "xenoprof") samples.source = sampler::SourceKind::kXenoprof;
  if (options.source == "vcpu") samples.source = sampler::SourceKind::kVcpu;
  if (options.source == "perf") samples.source = sampler::SourceKind::kPerf;
  samples.events = ParseEvents("-e", options.events);
  samples.active = options.active;
  samples.agent_events = ParseAgentEvents(options);
  samples.agent_bytes = uint64_t{options.agent_mb} << 20;
  if (options.agent_source == "xenoprof") {
    if (samples.source.value_or(sampler::SourceKind::kXenoprof) != sampler::SourceKind::kXenoprof) {
      ThrowInvalid("--agent-source",
                   "xenoprof is led by dom0's: it goes with --source xenoprof only");
    }
    samples.source = sampler::SourceKind::kXenoprof;
    samples.agent_source = sampler::agent::GuestSource::kXenoprof;
  }
  if (!options.passive.empty()) {
    samples.passive = options.passive;
    std::erase(*samples.passive, "none");
  }
  if (options.clock != "pmu") samples.hpet_hz = ParseClock(options.clock);
  if (options.drain_ms) {
    samples.drain_interval =
        std::chrono::nanoseconds(static_cast<int64_t>(*options.drain_ms * 1'000'000));
  }
  return samples;
}

void AddGuestOption(CLI::App& command, RecordOptions& options, const std::string& name,
                    SymbolFile::Kind kind, const std::string& help) {
  command.add_option(name, options.guest_files[kind], help)
      ->type_name("DOMAIN=FILE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace

sampler::RecordRequest ParseRecordOptions(const RecordOptions& options) {
  sampler::RecordRequest request;
  if (options.source != kTraceOnly) {
    request.samples = ParseSampling(options);
  } else if (!options.active.empty() || !options.agent_events.empty()) {
    ThrowInvalid(options.active.empty() ? "--agent-event" : "--active",
                 "wants samples, and --source trace takes none");
  } else if (options.no_trace) {
    ThrowInvalid("--no-trace", "and --source trace leave nothing");
  }
  if (!options.no_trace) request.trace = options.trace;
  for (const auto& [kind, texts] : options.guest_files) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        ThrowInvalid("--guest-...", fmt::format("'{}' is not DOMAIN=FILE", text));
      }
      request.guest_files.push_back({kind, text.substr(0, equals), text.substr(equals + 1)});
      const std::string& path = request.guest_files.back().path;
      if (access(path.c_str(), R_OK) != 0) {
        ThrowInvalid("--guest-...", fmt::format("cannot read {}", path));
      }
    }
  }
  return request;
}

void AddRecordOptions(CLI::App& command, RecordOptions& options) {
  const size_t before = command.get_options().size();
  command
      .add_option("--source", options.source,
                  "Where samples come from: xenoprof; vcpu: looks from dom0 at the guests' vCPUs, "
                  "on any Xen; perf: dom0's own Linux, or a Linux without Xen; trace: only the VM "
                  "exits in the trace; auto: the best that this "
                  "host has")
      ->check(CLI::IsMember({"auto", "xenoprof", "vcpu", "perf", "trace"}))
      ->type_name("SOURCE")
      ->capture_default_str();
  command
      .add_option("-e,--event", options.events,
                  "Sample every PERIOD counts of an event, or HZ times a second: a name of "
                  "`xenoscope events`, or rUUEE (unit mask, code), then u, k, h: in user mode, "
                  "kernel, hypervisor only; may be repeated. Default: cycles, 1000 a second")
      ->type_name("EVENT[:ukh][:PERIOD|@HZ]")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("-g", options.samples.call_chains, "As --call-graph fp");
  command.add_option("--call-graph", options.call_graph, "Call chains too; fp: by frame pointers")
      ->check(CLI::IsMember({"fp"}))
      ->type_name("fp");
  command.add_flag("--jitter,!--no-jitter", options.samples.jitter,
                   "perf: periods change at random, so that nothing is in step with them; on "
                   "unless --no-jitter");
  command
      .add_option("--active", options.active,
                  "Domains that sample themselves, by name or id: `xenoscope agent` runs in them "
                  "(docs/agent.md)")
      ->type_name("DOMAIN,...")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_option("--agent-source", options.agent_source,
                  "How active domains sample themselves: perf; xenoprof: Xen does, and PV domains "
                  "drain their own buffers, led by dom0's --source xenoprof")
      ->check(CLI::IsMember({"perf", "xenoprof"}))
      ->type_name("SOURCE")
      ->capture_default_str();
  command
      .add_option("--agent-event", options.agent_events,
                  "What active domains sample themselves by, where dom0 samples by something else; "
                  "as -e, and may be repeated. Default: the events of -e")
      ->type_name("EVENT[:ukh][:PERIOD|@HZ]")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_option("--agent-limit", options.agent_mb,
                  "MB that the agent of an active domain may send in this recording")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("MB")
      ->capture_default_str();
  command
      .add_option("--passive", options.passive,
                  "Domains that dom0 samples, by name or id; none; default: all that are not "
                  "active. One can be both")
      ->type_name("DOMAIN,...")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_option("--clock", options.clock,
                  "What takes samples: the processor's counters (pmu), or, where there are "
                  "none, NMIs of the machine's timer (hpet:HZ)")
      ->type_name("pmu|hpet:HZ")
      ->capture_default_str();
  command
      .add_option("--drain-interval", options.drain_ms,
                  "Milliseconds between two looks into the sample buffers; of xenoprof how "
                  "exactly a sample's time is known; default: 5, of perf 50")
      ->check(CLI::Range(0.1, 1000.0))
      ->type_name("MS");
  command
      .add_option("--buffer-samples", options.samples.buffer_samples,
                  "Samples that Xen holds for each vCPU")
      ->check(CLI::Range(16, 8189))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--looks", options.samples.poll_hz,
                  "vcpu: looks a second at each vCPU, at random instants")
      ->check(CLI::Range(1.0, 10000.0))
      ->type_name("HZ")
      ->capture_default_str();
  command
      .add_option("--seed", options.samples.seed,
                  "Of random instants and periods; default: another one each time")
      ->type_name("N");
  command.add_flag("--no-trace", options.no_trace, "Samples only");
  command.add_option("--trace-events", options.trace.events, "What to trace, as xentrace -e")
      ->type_name("MASK")
      ->capture_default_str();
  command
      .add_option("--trace-buffer", options.trace.buffer_pages,
                  "Pages of trace that Xen holds for each pCPU; Xen makes them when it is first "
                  "traced, and keeps them until the host reboots. Default: 1024; of more than 16 "
                  "pCPUs fewer, but at least 256")
      ->check(CLI::Range(1, 16384))
      ->type_name("PAGES");
  command
      .add_option("--trace-poll", options.trace.poll_ms,
                  "Milliseconds between two looks of xentrace into its buffers")
      ->check(CLI::Range(1, 10000))
      ->type_name("MS")
      ->capture_default_str();
  AddGuestOption(command, options, "--guest-kallsyms", SymbolFile::Kind::kKallsyms,
                 "/proc/kallsyms or System.map of a guest's kernel");
  AddGuestOption(command, options, "--guest-vmlinux", SymbolFile::Kind::kVmlinux,
                 "The ELF file of a guest's kernel, with symbols");
  AddGuestOption(command, options, "--guest-image", SymbolFile::Kind::kImage,
                 "An ELF file that runs in a guest's user mode");
  const std::vector<CLI::Option*> all = command.get_options([](CLI::Option*) { return true; });
  for (size_t i = before; i < all.size(); ++i) all[i]->group(kGroup);
}

std::vector<std::string> GivenRecordOptions(const CLI::App& command) {
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() != kGroup) continue;
    if (option->get_lnames().empty()) {  // -g, which takes no word
      if (option->count() > 0) given.push_back("-" + option->get_snames().front());
      continue;
    }
    for (const std::string& word : option->results()) {
      given.push_back(fmt::format("--{}={}", option->get_lnames().front(), word));
    }
  }
  return given;
}

}  // namespace xenoscope::cli
