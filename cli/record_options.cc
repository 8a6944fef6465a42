#include "cli/record_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "sampler/ftrace/event_list.h"
#include "sampler/ftrace/function_patterns.h"
#include "sampler/perf/perf_source.h"
#include "sampler/xen/wanted_buffer.h"
#include "trace/event_mask.h"

namespace xenoscope::cli {
namespace {

using recording::SymbolFile;

constexpr const char* kRecordingGroup = "Recording";

constexpr std::string_view kTraceOnly = "trace";  // of --source

uint32_t ParseClock(const std::string& text) {
  constexpr std::string_view kHpet = "hpet:";
  uint32_t hz = 0;
  if (text.starts_with(kHpet)) {
    const char* const begin = text.data() + kHpet.size();
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(begin, end, hz);
    if (error == std::errc() && stopped == end && hz > 0) return hz;
  }
  ThrowUsageError("--clock", fmt::format("'{}' is neither pmu nor hpet:HZ", text));
}

std::vector<sampler::EventSpec> ParseEvents(const std::string& option,
                                            const std::vector<std::string>& texts) {
  auto events = sampler::ParseEventSpecs(texts);
  if (!events.ok()) ThrowUsageError(option, std::string(Message(events.status())));
  return *std::move(events);
}

// The texts of single events, as agents parse them.
std::vector<std::string> SingleEvents(const std::vector<std::string>& texts) {
  std::vector<std::string> single;
  const auto events = sampler::SplitEventTexts(texts);  // that they are valid has been checked
  for (const sampler::EventText& event : *events) single.push_back(event.text);
  return single;
}

// What agents are asked for, as it was written: only they know which events their guests have.
std::vector<std::string> ParseAgentEvents(const RecordOptions& options) {
  if (options.agent_events.empty()) return SingleEvents(options.events);
  const std::string option = "--agent-event";
  ParseEvents(option, options.agent_events);
  if (options.active.empty())
    ThrowUsageError(option, "needs --active, the domains whose agents use the event");
  if (options.agent_source == "xenoprof") {
    ThrowUsageError(
        option,
        "cannot go with --agent-source xenoprof, which uses dom0's events: name them with -e");
  }
  return SingleEvents(options.agent_events);
}

// The size of the piece of stack that perf records by default, in bytes.
constexpr uint32_t kDefaultStackBytes = 8192;

// Returns the bytes of stack for each sample, for "dwarf[,BYTES]". Throws a usage error.
uint32_t ParseStackBytes(const std::string& text) {
  if (text == "dwarf") return kDefaultStackBytes;
  constexpr std::string_view kWithSize = "dwarf,";
  uint32_t bytes = 0;
  if (!text.starts_with(kWithSize)) {
    ThrowUsageError("--call-graph", fmt::format("'{}' is neither fp, dwarf[,BYTES] nor lbr", text));
  }
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + kWithSize.size(), end, bytes);
  if (error != std::errc() || stopped != end || bytes == 0 || bytes > sampler::kMaxStackBytes) {
    ThrowUsageError("--call-graph",
                    fmt::format("'{}': BYTES must be from 8 to {}", text, sampler::kMaxStackBytes));
  }
  constexpr uint32_t kWord = 8;
  return (bytes + kWord - 1) / kWord * kWord;
}

sampler::SampleRequest ParseSampling(const RecordOptions& options) {
  sampler::SampleRequest samples = options.samples;
  if (!options.call_graph.empty()) {
    samples.call_chains = true;
    samples.branch_records = options.call_graph == "lbr";
    if (options.call_graph != "fp" && !samples.branch_records) {
      samples.stack_bytes = ParseStackBytes(options.call_graph);
    }
  }
  if (options.source == "xenoprof") samples.source = sampler::SourceKind::kXenoprof;
  if (options.source == "vcpu") samples.source = sampler::SourceKind::kVcpu;
  if (options.source == "perf") samples.source = sampler::SourceKind::kPerf;
  samples.events = ParseEvents("-e", options.events);
  samples.active = options.active;
  samples.agent_events = ParseAgentEvents(options);
  samples.agent_bytes = uint64_t{options.agent_mb} << 20;
  if (options.agent_source == "xenoprof") {
    if (samples.source.value_or(sampler::SourceKind::kXenoprof) != sampler::SourceKind::kXenoprof) {
      ThrowUsageError(
          "--agent-source",
          "xenoprof needs --source xenoprof, because dom0's xenoprof controls that of guests");
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

// The classes that trace::ParseEventMask knows.
constexpr std::string_view kTraceClasses = "gen, sched, dom0op, hvm, mem, pv, shadow, hw, guest";

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  names.reserve(trace::kMaskPresets.size());
  for (const trace::NamedMask& preset : trace::kMaskPresets) names.emplace_back(preset.name);
  return names;
}

// Takes the mask apart. Throws a usage error.
trace::EventMask ParseTraceEvents(const std::string& text) {
  const std::optional<trace::EventMask> mask = trace::ParseEventMask(text);
  if (!mask) {
    ThrowUsageError(
        "--trace-events",
        fmt::format("'{}' is no preset ({}), no class ({}), no number as xentrace -e takes "
                    "it, and no list of these",
                    text, fmt::join(PresetNames(), ", "), kTraceClasses));
  }
  if (mask->IsEmpty()) {
    ThrowUsageError("--trace-events",
                    fmt::format("'{}' records nothing: a mask needs a bit of a class (0x00010000 "
                                "to 0x08000000) and one of a subclass (0x00001000 to 0x00008000)",
                                text));
  }
  return *mask;
}

std::string TraceEventsHelp() {
  std::string help = "Events of the trace, a preset:";
  for (const trace::NamedMask& preset : trace::kMaskPresets) {
    help += fmt::format(" {} ({}),", preset.name, preset.about);
  }
  help.back() = ';';
  return help + fmt::format(
                    " or a class ({}) or a number, as xentrace -e takes them; several are combined "
                    "(profile,mem)",
                    kTraceClasses);
}

void AddGuestOption(Command command, RecordOptions& options, const std::string& name,
                    SymbolFile::Kind kind, const std::string& help) {
  command.AddOption(name, options.guest_files[kind], help).ValueName("DOMAIN=FILE").Repeatable();
}

// Returns the events of kernels beside those of threads. Throws a usage error.
std::vector<std::string> ParseGuestEvents(const RecordOptions& options) {
  if (!options.guest_events.empty() && !options.threads) {
    ThrowUsageError("--guest-events", "goes with --threads only: its events are of threads");
  }
  const absl::Status status = sampler::CheckEventList(options.guest_events);
  if (!status.ok()) ThrowUsageError("--guest-events", std::string(Message(status)));
  return options.guest_events;
}

// Returns the patterns of functions of kernels that are traced. Throws a usage error.
std::vector<std::string> ParseGuestFunctions(const RecordOptions& options) {
  if (!options.guest_functions.empty() && !options.threads) {
    ThrowUsageError("--guest-functions",
                    "goes with --threads only, as calls are of threads; of a boot: xenoscope boot "
                    "--kernel-options --guest-functions");
  }
  const absl::Status status = sampler::CheckFunctionPatterns(options.guest_functions);
  if (!status.ok()) ThrowUsageError("--guest-functions", std::string(Message(status)));
  return options.guest_functions;
}

}  // namespace

sampler::RecordRequest ParseRecordOptions(const RecordOptions& options) {
  sampler::RecordRequest request;
  if (options.source != kTraceOnly) {
    request.samples = ParseSampling(options);
    request.samples->agent_threads = options.threads;
    request.samples->agent_kernel_events = options.guest_events;
    request.samples->agent_functions = options.guest_functions;
  } else if (!options.active.empty() || !options.agent_events.empty()) {
    ThrowUsageError(options.active.empty() ? "--agent-event" : "--active",
                    "needs samples, and --source trace takes none; choose another --source");
  } else if (options.no_trace) {
    ThrowUsageError("--no-trace",
                    "and --source trace together leave nothing to record; give only one of them");
  }
  request.boost = options.boost;
  request.threads = options.threads;
  request.kernel_events = ParseGuestEvents(options);
  request.functions = ParseGuestFunctions(options);
  if (!options.no_trace) {
    request.trace = options.trace;
    request.trace->event_mask = ParseTraceEvents(options.trace.events);
  }
  for (const auto& [kind, texts] : options.guest_files) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        ThrowUsageError("--guest-...", fmt::format("'{}' is not DOMAIN=FILE", text));
      }
      request.guest_files.push_back({kind, text.substr(0, equals), text.substr(equals + 1)});
      const std::string& path = request.guest_files.back().path;
      if (access(path.c_str(), R_OK) != 0) {
        ThrowUsageError("--guest-...", fmt::format("cannot read {}", path));
      }
    }
  }
  return request;
}

void AddRecordOptions(Command command, RecordOptions& options) {
  const size_t before = command.Options().size();
  command
      .AddOption("--source", options.source,
                 "Source of samples: xenoprof (counters or NMIs, all domains and Xen; x86 only); "
                 "vcpu (polls the guests' vCPUs from dom0, on any Xen); perf (dom0's own Linux, or "
                 "a Linux without Xen); trace (no samples, only the trace with its VM exits); auto "
                 "(the best that works here)")
      .OneOf({"auto", "xenoprof", "vcpu", "perf", "trace"})
      .ValueName("SOURCE")
      .ShowDefault();
  command
      .AddOption(
          "-e,--event", options.events,
          "Event: a name of `xenoscope events`, or rUUEE (unit mask, event code). u, k, h: count "
          "in user, kernel, hypervisor mode only. PERIOD: sample every so many counts; HZ: so many "
          "times a second. Several: A,B or, to count them together and compare them, {A,B}, as in "
          "perf. May be repeated. Default: cycles, 1000 times a second")
      .ValueName("EVENT[:ukh][:PERIOD|@HZ]")
      .Repeatable();
  command.AddFlag("-g", options.samples.call_chains, "Same as --call-graph fp");
  command
      .AddOption(
          "--call-graph", options.call_graph,
          "Record call chains; fp: follow frame pointers; dwarf: with source perf and agents, "
          "record BYTES (default 8192, at most 65528) of the user stack with each sample, from "
          "which reports find the callers by the programs' tables for unwinding; lbr: with source "
          "perf and agents, read the calls that the processor recorded (Intel since Haswell). "
          "Other sources follow frame pointers; vcpu also records the guests' stacks, for reports "
          "that get their files (report --guest DOMAIN:kernel=VMLINUX,exe=PROGRAM)")
      .ValueName("fp|dwarf[,BYTES]|lbr");
  command.AddFlag("--java-maps", options.samples.java_maps,
                  "With source perf: ask dom0's Java virtual machines for the names of their "
                  "functions, again and again, as `jcmd PID Compiler.perfmap` does (Java 17 and "
                  "later). Guests: agent --java-maps");
  command.AddFlag("--jitter,!--no-jitter", options.samples.jitter,
                  "perf: vary periods at random, so that samples do not get in step with the work; "
                  "on by default");
  command
      .AddOption("--active", options.active,
                 "Domains that sample themselves, by name or id; each must run `xenoscope agent` "
                 "(docs/agent.md)")
      .ValueName("DOMAIN,...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption("--agent-source", options.agent_source,
                 "Source of active domains: perf; xenoprof (Xen samples, and PV domains drain "
                 "their own buffers; needs --source xenoprof)")
      .OneOf({"perf", "xenoprof"})
      .ValueName("SOURCE")
      .ShowDefault();
  command
      .AddOption("--agent-event", options.agent_events,
                 "Event of active domains, as in -e. May be repeated. Default: the events of -e")
      .ValueName("EVENT[:ukh][:PERIOD|@HZ]")
      .Repeatable();
  command
      .AddOption("--agent-limit", options.agent_mb,
                 "Maximum of data from each agent in this recording, in MB")
      .Range(1, 1 << 20)
      .ValueName("MB")
      .ShowDefault();
  command
      .AddOption("--passive", options.passive,
                 "Domains that dom0 samples, by name or id, or none. A domain can be both active "
                 "and passive. Default: all that are not active")
      .ValueName("DOMAIN,...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption("--clock", options.clock,
                 "xenoprof: what triggers samples: the CPU's performance counters (pmu) or, on "
                 "machines without them, NMIs of the HPET (hpet:HZ)")
      .ValueName("pmu|hpet:HZ")
      .ShowDefault();
  command
      .AddOption("--drain-interval", options.drain_ms,
                 "Milliseconds between two drains of the sample buffers; with xenoprof, sample "
                 "times are known within this interval. Default: 5, perf 50")
      .Range(0.1, 1000.0)
      .ValueName("MS");
  command
      .AddOption("--buffer-samples", options.samples.buffer_samples,
                 "xenoprof: size of each vCPU's buffer in Xen, in samples")
      .Range(16, 8189)
      .ValueName("N")
      .ShowDefault();
  command
      .AddOption("--looks", options.samples.poll_hz,
                 "vcpu: polls of each vCPU per second, at random times")
      .Range(1.0, 10000.0)
      .ValueName("HZ")
      .ShowDefault();
  command
      .AddOption("--seed", options.samples.seed,
                 "Seed of random times and periods; default: a new one each time")
      .ValueName("N");
  command.AddFlag("--no-trace", options.no_trace, "Record samples only");
  command.AddOption("--trace-events", options.trace.events, TraceEventsHelp())
      .Suggest("PRESET|MASK,...", PresetNames())
      .ShowDefault();
  command
      .AddOption("--trace-buffer", options.trace.buffer_pages,
                 "Size of each pCPU's trace buffer in Xen, in pages. Xen allocates it at the first "
                 "trace and keeps that size until the host reboots. Default: 1024; fewer above 16 "
                 "pCPUs, at least 256; more after a recording that lost records")
      .Range(1U, sampler::kMaxBufferPages)
      .ValueName("PAGES");
  command
      .AddOption("--trace-poll", options.trace.poll_ms,
                 "Milliseconds between two reads of the trace buffers by xentrace")
      .Range(1, 10000)
      .ValueName("MS")
      .ShowDefault();
  command.AddFlag("--boost", options.boost,
                  "Raise dom0's weight in credit2 or credit to 8 times what it is until the "
                  "recording ends, so that dom0 drains buffers in time while guests keep all pCPUs "
                  "busy. Guests get less time meanwhile. If record is killed, the next record or "
                  "doctor restores the weight");
  command.AddFlag("--threads", options.threads,
                  "Record which thread each vCPU of dom0 and of --active domains runs, by events "
                  "of their kernels' tracing (an instance of ftrace of its own); `xenoscope "
                  "threads` shows them, and `report --by thread` samples in them");
  command
      .AddOption("--guest-events", options.guest_events,
                 "With --threads: record these events of the same kernels, too, by the names of "
                 "/sys/kernel/tracing/available_events. raw_syscalls: system calls (`xenoscope "
                 "threads --syscalls`). All of them are in `threads --format trace.dat`")
      .ValueName("SYSTEM[:EVENT],...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption("--guest-functions", options.guest_functions,
                 "With --threads: trace calls of functions of the same kernels, those with these "
                 "names, in which * stands for any characters (`xenoscope threads --calls`, "
                 "--call-tree). With times where the kernel has function_graph in instances (Linux "
                 "6.13 and later), else numbers of calls with their callers")
      .ValueName("PATTERN,...")
      .SplitAt(',')
      .Repeatable();
  AddGuestOption(command, options, "--guest-kallsyms", SymbolFile::Kind::kKallsyms,
                 "/proc/kallsyms or System.map of a guest's kernel");
  AddGuestOption(command, options, "--guest-vmlinux", SymbolFile::Kind::kVmlinux,
                 "ELF file of a guest's kernel, with symbols");
  AddGuestOption(command, options, "--guest-image", SymbolFile::Kind::kImage,
                 "ELF file of a program in a guest");
  std::vector<Option> all = command.Options();
  for (size_t i = before; i < all.size(); ++i) all[i].Group(kRecordingGroup);
}

std::vector<std::string> GivenRecordOptions(Command command) {
  std::vector<std::string> given;
  for (const Option& option : command.Options()) {
    if (option.GroupName() != kRecordingGroup) continue;
    if (option.LongNames().empty()) {  // -g, which takes no word
      if (option.IsGiven()) given.push_back("-" + option.ShortNames().front());
      continue;
    }
    for (const std::string& word : option.Words()) {
      given.push_back(fmt::format("--{}={}", option.LongNames().front(), word));
    }
  }
  return given;
}

}  // namespace xenoscope::cli
