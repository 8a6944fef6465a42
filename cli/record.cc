// `xenoscope record`: samples and trace of a Xen host into a recording.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "report/recording_line.h"
#include "report/terminal.h"
#include "sampler/recorder.h"

namespace xenoscope::cli {
namespace {

using recording::SymbolFile;
using sampler::Progress;
using sampler::RecordRequest;

// The words of the command line, before they mean anything.
struct Words {
  std::string output = "xenoscope.xeno";
  std::vector<std::string> events;
  std::vector<std::string> active;
  std::vector<std::string> passive;
  uint32_t agent_mb = 1024;
  std::string clock = "pmu";
  std::string source = "auto";
  std::string call_graph;
  bool no_trace = false;
  sampler::TraceRequest trace;
  sampler::SampleRequest samples;
  std::optional<double> drain_ms;
  double duration_s = 0;
  std::map<SymbolFile::Kind, std::vector<std::string>> guest_files;
  std::vector<std::string> command;
};

constexpr std::string_view kTraceAlone = "trace";  // of --source

[[noreturn]] void Wrong(const std::string& option, const std::string& what) {
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
  Wrong("--clock", fmt::format("'{}' is neither pmu nor hpet:HZ", text));
}

sampler::SampleRequest ParseSampling(const Words& words) {
  sampler::SampleRequest samples = words.samples;
  samples.call_chains = samples.call_chains || !words.call_graph.empty();
  if (words.source == "xenoprof") samples.source = sampler::SourceKind::kXenoprof;
  if (words.source == "vcpu") samples.source = sampler::SourceKind::kVcpu;
  if (words.source == "perf") samples.source = sampler::SourceKind::kPerf;
  for (const std::string& text : words.events) {
    auto event = sampler::ParseEventSpec(text);
    if (!event.ok()) Wrong("-e", std::string(Message(event.status())));
    samples.events.push_back(*std::move(event));
  }
  samples.active = words.active;
  samples.agent_events = words.events;
  samples.agent_bytes = uint64_t{words.agent_mb} << 20;
  if (!words.passive.empty()) {
    samples.passive = words.passive;
    std::erase(*samples.passive, "none");
  }
  if (words.clock != "pmu") samples.hpet_hz = ParseClock(words.clock);
  if (words.drain_ms) {
    samples.drain_interval =
        std::chrono::nanoseconds(static_cast<int64_t>(*words.drain_ms * 1'000'000));
  }
  return samples;
}

RecordRequest Parse(const Words& words) {
  RecordRequest request;
  request.output = words.output;
  request.written_by = "xenoscope " XENOSCOPE_VERSION;
  request.command = words.command;
  if (words.source != kTraceAlone) {
    request.samples = ParseSampling(words);
  } else if (!words.active.empty()) {
    Wrong("--active", "wants samples, and --source trace takes none");
  } else if (words.no_trace) {
    Wrong("--no-trace", "and --source trace leave nothing");
  }
  if (!words.no_trace) request.trace = words.trace;
  if (words.duration_s > 0) {
    request.duration =
        std::chrono::nanoseconds(static_cast<int64_t>(words.duration_s * 1'000'000'000));
  }
  for (const auto& [kind, texts] : words.guest_files) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        Wrong("--guest-...", fmt::format("'{}' is not DOMAIN=FILE", text));
      }
      request.guest_files.push_back({kind, text.substr(0, equals), text.substr(equals + 1)});
      const std::string& path = request.guest_files.back().path;
      if (access(path.c_str(), R_OK) != 0) {
        Wrong("--guest-...", fmt::format("cannot read {}", path));
      }
    }
  }
  return request;
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string Bytes(uint64_t bytes) {
  constexpr double kMega = 1e6;
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMega);
}

report::RecordingState StateOf(const RecordRequest& request, const Progress& now) {
  report::RecordingState state;
  state.seconds = Seconds(now.elapsed);
  for (const auto& [name, samples] : now.of_domain) state.domains.push_back({name, samples});
  state.lost = now.lost;
  state.trace_bytes = now.trace_bytes;
  state.disk_left = now.disk_left;
  state.sampling = !now.of_domain.empty();
  state.tracing = request.trace.has_value();
  return state;
}

// Samples kept of each domain: "1860 of Domain-0, 3634 of web".
std::string SamplesByDomain(const recording::RecordingInfo& info) {
  std::vector<std::string> parts;
  for (const recording::DomainInfo& domain : info.domains) {
    uint64_t kept = 0;
    for (const recording::StreamInfo& stream : info.streams) {
      if (stream.vcpu.domain == domain.id) kept += stream.kept;
    }
    if (kept == 0 && domain.role == recording::Role::kNone) continue;
    const std::string name = domain.name.empty() ? ToString(domain.id) : domain.name;
    parts.push_back(fmt::format("{} of {}{}", kept, name, domain.died ? " (died)" : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void ShowResult(const RecordRequest& request, const sampler::RecordResult& result) {
  const Progress& last = result.last;
  fmt::print(stderr, "{}: {:.1f} s", request.output, Seconds(last.elapsed));
  if (!result.info.sources.empty()) {
    fmt::print(stderr, "; samples: {}; {} lost, {}", SamplesByDomain(result.info), last.lost,
               Bytes(last.sample_bytes));
  }
  if (result.info.trace) fmt::print(stderr, "; trace {}", Bytes(last.trace_bytes));
  fmt::print(stderr, "\n");
}

// What looking at guests has cost them.
void ShowStops(const sampler::RecordResult& result) {
  recording::LookCounters all;
  uint64_t vcpus = 0;
  for (const recording::StreamInfo& stream : result.info.streams) {
    if (!stream.looks) continue;
    ++vcpus;
    all.total += stream.looks->total;
    all.blocked += stream.looks->blocked;
    all.failed += stream.looks->failed;
    all.stopped_cycles += stream.looks->stopped_cycles;
    all.longest_stop = std::max(all.longest_stop, stream.looks->longest_stop);
  }
  const Cycles sampled = result.info.stopped - result.info.started;
  if (vcpus == 0 || sampled == 0) return;
  const Clock clock{result.info.host.clock_hz, ClockSource::kRecorded};
  fmt::print(
      stderr,
      "{} looks at {} vCPUs: {} found them blocked, {} failed; they were stopped for {:.2f} % "
      "of the time at most, {:.0f} us at the longest\n",
      all.total, vcpus, all.blocked, all.failed,
      100 * static_cast<double>(all.stopped_cycles) /
          (static_cast<double>(sampled) * static_cast<double>(vcpus)),
      1e6 * clock.Seconds(all.longest_stop));
}

// Counters that count have hit dom0 at least, which was at work.
bool CountersAreSilent(const sampler::RecordResult& result) {
  const auto by_counters = [](const recording::EventInfo& event) {
    return event.clocked_by == "pmu";
  };
  return std::ranges::any_of(result.info.events, by_counters) && result.last.samples == 0 &&
         result.last.lost == 0;
}

absl::Status RunRecord(const RecordRequest& request) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  report::RecordingState shown;
  const auto progress = [&](const Progress& progress_now) {
    if (!terminal) return;
    report::RecordingState now = StateOf(request, progress_now);
    // The last column stays free: some terminals begin a new line when it is written.
    const size_t width = report::StderrColumns() - 1;
    fmt::print(stderr, "\r\033[K{}", report::RecordingLine(shown, now, width));
    shown = std::move(now);
  };
  XENOSCOPE_ASSIGN_OR_RETURN(const sampler::RecordResult result,
                             sampler::Record(request, progress));
  if (shown.seconds > 0) fmt::print(stderr, "\r\033[K");
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  for (const recording::StreamInfo& stream : result.info.streams) {
    if (stream.Balanced()) continue;
    fmt::print(stderr, "note: {}: {} entries drained, Xen logged {}\n", ToString(stream.vcpu),
               stream.drained, stream.logged.Logged());
  }
  ShowStops(result);
  ShowResult(request, result);
  if (CountersAreSilent(result)) {
    fmt::print(stderr,
               "WARNING: not one sample came: this machine's performance counters do not count (a "
               "virtual one has none); record with --source vcpu, or with --clock hpet:HZ\n");
  }
  if (const auto warning = report::LossWarning(result.last.samples, result.last.lost)) {
    fmt::print(stderr, "{}\n", *warning);
  }
  return result.status;
}

void AddGuestOption(CLI::App& command, const std::shared_ptr<Words>& words, const std::string& name,
                    SymbolFile::Kind kind, const std::string& help) {
  command.add_option(name, words->guest_files[kind], help)
      ->type_name("DOMAIN=FILE")
      ->expected(1)
      ->take_all();
}

}  // namespace

void AddRecord(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("record", "Record samples and trace of this Xen host");
  auto words = std::make_shared<Words>();
  command
      ->add_option("-o,--output", words->output,
                   "The recording to make; one that is there becomes NAME.old")
      ->type_name("NAME.xeno")
      ->capture_default_str();
  command
      ->add_option("--source", words->source,
                   "Where samples come from: xenoprof; vcpu: looks from dom0 at the guests' vCPUs, "
                   "on any Xen; perf: dom0's own Linux, or a Linux without Xen; trace: only the VM "
                   "exits in the trace; auto: the best that this "
                   "host has")
      ->check(CLI::IsMember({"auto", "xenoprof", "vcpu", "perf", "trace"}))
      ->type_name("SOURCE")
      ->capture_default_str();
  command
      ->add_option("-e,--event", words->events,
                   "Sample every PERIOD counts of an event, or HZ times a second: a name of "
                   "`xenoscope events`, or rUUEE (unit mask, code), then u, k, h: in user mode, "
                   "kernel, hypervisor only; may be repeated. Default: cycles, 1000 a second")
      ->type_name("EVENT[:ukh][:PERIOD|@HZ]")
      ->expected(1)
      ->take_all();
  command->add_flag("-g", words->samples.call_chains, "As --call-graph fp");
  command
      ->add_option("--call-graph", words->call_graph,
                   "Call chains too; fp: by frame pointers (xenoprof, perf)")
      ->check(CLI::IsMember({"fp"}))
      ->type_name("fp");
  command->add_flag("--jitter,!--no-jitter", words->samples.jitter,
                    "perf: periods change at random, so that nothing is in step with them; on "
                    "unless --no-jitter");
  command
      ->add_option("--active", words->active,
                   "Domains that sample themselves, by name or id: `xenoscope agent` runs in them "
                   "(docs/agent.md)")
      ->type_name("DOMAIN,...")
      ->delimiter(',')
      ->expected(1)
      ->take_all();
  command
      ->add_option("--agent-limit", words->agent_mb,
                   "MB that the agent of an active domain may send in this recording")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("MB")
      ->capture_default_str();
  command
      ->add_option("--passive", words->passive,
                   "Domains that dom0 samples, by name or id; none; default: all that are not "
                   "active. One can be both")
      ->type_name("DOMAIN,...")
      ->delimiter(',')
      ->expected(1)
      ->take_all();
  command
      ->add_option("--clock", words->clock,
                   "What takes samples: the processor's counters (pmu), or, where there are "
                   "none, NMIs of the machine's timer (hpet:HZ)")
      ->type_name("pmu|hpet:HZ")
      ->capture_default_str();
  command
      ->add_option("--drain-interval", words->drain_ms,
                   "Milliseconds between two looks into the sample buffers; of xenoprof how "
                   "exactly a sample's time is known; default: 5, of perf 50")
      ->check(CLI::Range(0.1, 1000.0))
      ->type_name("MS");
  command
      ->add_option("--buffer-samples", words->samples.buffer_samples,
                   "Samples that Xen holds for each vCPU")
      ->check(CLI::Range(16, 8189))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--looks", words->samples.looks_hz,
                   "vcpu: looks a second at each vCPU, at random instants")
      ->check(CLI::Range(1.0, 10000.0))
      ->type_name("HZ")
      ->capture_default_str();
  command
      ->add_option("--seed", words->samples.seed,
                   "Of random instants and periods; default: another one each time")
      ->type_name("N");
  command->add_flag("--no-trace", words->no_trace, "Samples only");
  command->add_option("--trace-events", words->trace.events, "What to trace, as xentrace -e")
      ->type_name("MASK")
      ->capture_default_str();
  command
      ->add_option("--trace-buffer", words->trace.buffer_pages,
                   "Pages of trace that Xen holds for each pCPU")
      ->check(CLI::Range(1, 16384))
      ->type_name("PAGES")
      ->capture_default_str();
  command
      ->add_option("--trace-poll", words->trace.poll_ms,
                   "Milliseconds between two looks of xentrace into its buffers")
      ->check(CLI::Range(1, 10000))
      ->type_name("MS")
      ->capture_default_str();
  AddGuestOption(*command, words, "--guest-kallsyms", SymbolFile::Kind::kKallsyms,
                 "/proc/kallsyms or System.map of a guest's kernel");
  AddGuestOption(*command, words, "--guest-vmlinux", SymbolFile::Kind::kVmlinux,
                 "The ELF file of a guest's kernel, with symbols");
  AddGuestOption(*command, words, "--guest-image", SymbolFile::Kind::kImage,
                 "An ELF file that runs in a guest's user mode");
  command->add_option("--duration", words->duration_s, "End after so many seconds")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  command->add_option("COMMAND", words->command,
                      "Record while this runs; without it until Ctrl-C or --duration");
  command->footer(
      "Example:\n"
      "  xenoscope record -o web.xeno -e cpu_clk_unhalted:1000000 --passive=web,db -- sleep 10");
  command->callback(
      [&run, words] { run = [request = Parse(*words)] { return RunRecord(request); }; });
}

}  // namespace xenoscope::cli
