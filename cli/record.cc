// `xenoscope record`: samples and trace of a Xen host into a recording.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/record_continuous.h"
#include "cli/record_options.h"
#include "cli/record_share.h"
#include "profile/sample_choice.h"
#include "report/profile/chain_notes.h"
#include "report/profile/changes.h"
#include "report/recording_line.h"
#include "report/terminal.h"
#include "sampler/recorder.h"

namespace xenoscope::cli {
namespace {

using sampler::Progress;
using sampler::RecordRequest;
using sampler::SampleRequest;

constexpr double kMinSeconds = 0.001;
constexpr double kMaxSeconds = 1e9;
// Xen's records of a domain's shutdown are among these (TRC_SCHED_VERBOSE, public/trace.h).
constexpr uint32_t kSchedVerbose = 0x00028000;

struct RecordCommandOptions {
  std::string output = "xenoscope.xeno";
  RecordOptions recorded;
  ContinuousOptions continuous;
  double duration_s = 0;
  std::vector<std::string> boot;
  std::vector<std::string> shutdown;
  std::vector<std::string> share;
  std::vector<std::string> command;
};

// Lets the recording have what `xenoscope shutdown` shows.
void RecordShutdown(const std::vector<std::string>& guests, RecordRequest& request) {
  request.shutdown = guests;
  request.trace->event_mask.value |= kSchedVerbose;
  if (!request.samples) return;
  SampleRequest& samples = *request.samples;
  samples.agent_threads = true;
  samples.agent_shutdown = true;
  for (const char* const event : {"signal:signal_generate", "syscalls:sys_enter_reboot"}) {
    samples.agent_kernel_events.emplace_back(event);
  }
}

RecordRequest Parse(const RecordCommandOptions& options) {
  RecordRequest request = ParseRecordOptions(options.recorded);
  request.output = options.output;
  request.written_by = "xenoscope " XENOSCOPE_VERSION;
  request.command = options.command;
  request.boot = options.boot;
  if (!options.shutdown.empty()) RecordShutdown(options.shutdown, request);
  if (options.duration_s > 0) {
    request.duration =
        std::chrono::nanoseconds(static_cast<int64_t>(options.duration_s * 1'000'000'000));
  }
  return request;
}

void Check(const RecordCommandOptions& options) {
  CheckContinuousOptions(options.continuous);
  CheckShare(options.share, options.recorded, options.continuous.continuous);
  if (!options.boot.empty() && (options.continuous.continuous || options.recorded.no_trace)) {
    ThrowUsageError("--boot",
                    "needs Xen's trace from before the guest starts: leave out "
                    "--continuous and --no-trace");
  }
  if (!options.shutdown.empty() && (options.continuous.continuous || options.recorded.no_trace)) {
    ThrowUsageError("--shutdown",
                    "needs Xen's trace until the guest is gone: leave out --continuous and "
                    "--no-trace");
  }
  if (options.continuous.continuous && (options.duration_s > 0 || !options.command.empty())) {
    ThrowUsageError("--continuous",
                    "records until a signal: leave out the command and --duration, or use --slice");
  }
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
  state.lost_trace = now.lost_time;
  state.disk_left = now.disk_left;
  state.own_cpu = Seconds(now.own_cpu);
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
    parts.push_back(fmt::format("{} of {}{}", kept, DomainLabel(domain.id, domain.name),
                                domain.died ? " (died)" : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void ShowResult(const RecordRequest& request, const sampler::RecordResult& result) {
  const Progress& last = result.last;
  fmt::print(stderr, "{}: {:.1f} s", request.output, Seconds(last.elapsed));
  if (!result.info.events.empty()) {
    fmt::print(stderr, "; samples: {}; {} samples lost, {}", SamplesByDomain(result.info),
               last.lost, Bytes(last.sample_bytes));
  }
  if (result.info.trace) {
    fmt::print(stderr, "; trace {}, {} records lost", Bytes(last.trace_bytes), last.lost_records);
  }
  uint64_t events = 0;
  uint64_t lost = 0;
  for (const recording::KernelTraceInfo& trace : result.info.kernel_traces) {
    events += trace.read;
    lost += trace.lost;
  }
  if (!result.info.kernel_traces.empty()) {
    fmt::print(stderr, "; {} kernel events, {} lost", events, lost);
  }
  fmt::print(stderr, "\n");
}

// Warns where a slow disk delayed the drains.
void WarnOfFullDisk(const sampler::RecordResult& result) {
  for (const recording::SourceInfo& source : result.info.sources) {
    if (source.drains.held_ns == 0) continue;
    fmt::print(stderr,
               "WARNING: the disk was too slow: {} of {}'s samples waited for it, and its buffers "
               "were not drained for {:.1f} s in total; record to a faster disk with -o\n",
               Bytes(source.drains.most_waiting_bytes), source.name,
               Seconds(std::chrono::nanoseconds(source.drains.held_ns)));
  }
}

// Warns where dom0 got no pCPU when buffers were to be drained. A poll of vCPUs comes at random
// times, and a guest drains its own. Without Xen nothing of the advice applies, and samples have
// times of their own.
void WarnOfLateDrains(const RecordRequest& request, const sampler::RecordResult& result) {
  if (result.info.xen.version.empty()) return;
  for (const recording::SourceInfo& source : result.info.sources) {
    constexpr uint64_t kMinDrains = 10;
    if (source.name != "xenoprof" && source.name != "perf") continue;
    if (source.drains.count < kMinDrains || source.drains.held_ns != 0) continue;
    constexpr double kNs = 1e-9;
    const report::DrainIntervals drains{
        .source = source.name,
        .asked = kNs * static_cast<double>(source.drain_interval_ns),
        .median = kNs * static_cast<double>(source.drains.p50_ns),
        .p99 = kNs * static_cast<double>(source.drains.p99_ns)};
    const auto warning = report::LateDrainWarning(drains, request.boost);
    if (warning) fmt::print(stderr, "{}\n", *warning);
  }
}

// How coarse times are, and what it took. Linux without CONFIG_PARAVIRT_TIME_ACCOUNTING, as Debian
// builds it, counts the time too in which Xen gave its vCPU no pCPU: no less than what it took.
void ShowCost(const sampler::RecordResult& result) {
  std::string drains;
  for (const recording::SourceInfo& source : result.info.sources) {
    if (source.name == "vcpu" || source.drains.count == 0) continue;
    constexpr double kMs = 1e-6;
    drains +=
        fmt::format("{} drained every {:.1f} ms (99 % within {:.1f} ms, all within {:.1f} ms); ",
                    source.name, kMs * static_cast<double>(source.drains.p50_ns),
                    kMs * static_cast<double>(source.drains.p99_ns),
                    kMs * static_cast<double>(source.drains.most_ns));
  }
  fmt::print(stderr, "{}recording took at most {:.1f} % of a CPU\n", drains,
             100 * Seconds(result.last.own_cpu) / Seconds(result.last.elapsed));
}

// Prints what the pieces of stacks took on the disk.
void ShowStacks(const sampler::RecordResult& result) {
  for (const recording::SourceInfo& source : result.info.sources) {
    if (!source.stacks) continue;
    const recording::StackInfo& stacks = *source.stacks;
    fmt::print(stderr, "{}: {} pieces of stacks, {} compressed to {} ({}/s)\n", source.name,
               stacks.pieces, Bytes(stacks.raw_bytes), Bytes(stacks.stored_bytes),
               Bytes(static_cast<uint64_t>(static_cast<double>(stacks.stored_bytes) /
                                           Seconds(result.last.elapsed))));
    if (stacks.left_out == 0) continue;
    fmt::print(stderr,
               "WARNING: {} samples have no stack, because more came than may be written; {}\n",
               stacks.left_out,
               source.name == "vcpu" ? "poll less often (--looks HZ)"
                                     : "record smaller pieces (--call-graph dwarf,BYTES) or fewer "
                                       "samples (-e EVENT@HZ)");
  }
}

// Prints the time for which polls stopped guests.
void ShowStops(const sampler::RecordResult& result) {
  recording::PollCounters all;
  uint64_t vcpus = 0;
  for (const recording::StreamInfo& stream : result.info.streams) {
    if (!stream.polls) continue;
    ++vcpus;
    all.total += stream.polls->total;
    all.blocked += stream.polls->blocked;
    all.failed += stream.polls->failed;
    all.stopped_cycles += stream.polls->stopped_cycles;
    all.longest_stop = std::max(all.longest_stop, stream.polls->longest_stop);
    all.callers += stream.polls->callers;
    all.cut_chains += stream.polls->cut_chains;
  }
  const Cycles sampled = result.info.stopped - result.info.started;
  if (vcpus == 0 || sampled == 0) return;
  const Clock clock{result.info.host.clock_hz, ClockSource::kRecorded};
  fmt::print(stderr,
             "{} polls of {} vCPUs: {} found them blocked, {} failed; polls paused a vCPU for at "
             "most {:.2f} % of the time, {:.0f} us at the longest\n",
             all.total, vcpus, all.blocked, all.failed,
             100 * static_cast<double>(all.stopped_cycles) /
                 (static_cast<double>(sampled) * static_cast<double>(vcpus)),
             1e6 * clock.Seconds(all.longest_stop));
  if (all.callers + all.cut_chains == 0) return;
  fmt::print(stderr,
             "{} callers were found on their stacks; {} call chains end early, because frame "
             "pointers are missing\n",
             all.callers, all.cut_chains);
}

// What the timer sent that stood in for the counters, and where that went.
void ShowNmis(const sampler::RecordResult& result) {
  for (const recording::EventInfo& event : result.info.events) {
    if (!event.nmis) continue;
    fmt::print(stderr,
               "{}: {} NMIs: {} logged, {} lost, {} came while no sampled vCPU ran or the NMI "
               "before was not done\n",
               event.clocked_by, event.nmis->sent, event.nmis->logged, event.nmis->lost,
               event.nmis->elsewhere);
    return;  // of all events the same
  }
}

// Warns if no sample came of events that counters count. Dom0 was at work, so that counters of time
// that count had samples of it; other events may not have happened.
void WarnOfNoSamples(const sampler::RecordResult& result) {
  if (result.last.samples != 0 || result.last.lost != 0) return;
  std::vector<std::string> counted;
  bool is_time = false;
  for (const recording::EventInfo& event : result.info.events) {
    if (event.clocked_by != "pmu") continue;
    counted.push_back(event.name);
    is_time = is_time || profile::CountsTime(event);
  }
  if (counted.empty()) return;
  if (is_time) {
    fmt::print(stderr,
               "WARNING: there are no samples: this machine's performance counters do not count (a "
               "virtual machine has none); record with --source vcpu or --clock hpet:HZ\n");
    return;
  }
  fmt::print(stderr,
             "WARNING: there are no samples of {}: fewer than one period of it happened, or this "
             "machine's performance counters do not count; -e cycles beside it shows which\n",
             fmt::join(counted, ", "));
}

// The exit status, as perf has it: that of the command, where its end ended the recording.
Outcome OutcomeOf(const RecordRequest& request, const sampler::RecordResult& result) {
  Outcome outcome(result.status);
  if (!result.command_exit) return outcome;
  outcome.exit_status = result.command_exit->status;
  if (!result.command_exit->Succeeded()) {
    fmt::print(stderr, "{} {}\n", request.command.front(), ToString(*result.command_exit));
  }
  return outcome;
}

// Records, and shares the recording with these guests.
Outcome RunRecord(const RecordRequest& request, const std::vector<std::string>& share) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  report::RecordingState shown;
  const auto progress = [&](const Progress& progress_now) {
    if (!terminal) return;
    report::RecordingState now = StateOf(request, progress_now);
    // The last column stays free: some terminals begin a new line when it is written.
    const size_t width = report::StderrColumns() - 1;
    ShowProgress(report::RecordingLine(shown, now, width));
    shown = std::move(now);
  };
  const absl::StatusOr<sampler::RecordResult> recorded = sampler::Record(request, progress);
  if (!recorded.ok()) return recorded.status();
  const sampler::RecordResult& result = *recorded;
  if (shown.seconds > 0) ShowProgress("");
  for (const std::string& note : result.notes) fmt::print(stderr, "note: {}\n", note);
  for (const recording::StreamInfo& stream : result.info.streams) {
    if (stream.Balanced()) continue;
    fmt::print(stderr, "note: {}: {} entries drained, Xen logged {}\n", ToString(stream.vcpu),
               stream.drained, stream.logged.Logged());
  }
  for (const std::string& note : report::ChainNotes(result.info)) {
    fmt::print(stderr, "note: {}\n", note);
  }
  for (const std::string& change : report::ChangeLines(result.info)) {
    fmt::print(stderr, "during the recording: {}\n", change);
  }
  ShowStops(result);
  ShowStacks(result);
  ShowNmis(result);
  ShowCost(result);
  ShowResult(request, result);
  WarnOfNoSamples(result);
  WarnOfFullDisk(result);
  WarnOfLateDrains(request, result);
  if (const auto warning = report::LossWarning(result.last.samples, result.last.lost)) {
    fmt::print(stderr, "{}\n", *warning);
  }
  if (result.info.trace) {
    const auto warning = report::TraceLossWarning(result.last.lost_records, result.last.lost_time,
                                                  result.info.trace->buffer_pages);
    if (warning) fmt::print(stderr, "{}\n", *warning);
  }
  Outcome outcome = OutcomeOf(request, result);
  outcome.status.Update(ShareRecording(request.output, result.info, share));
  return outcome;
}

}  // namespace

void AddRecord(Command program, CommandAction& run) {
  Command command = program.AddSubcommand("record", "Record samples and a trace of this Xen host");
  auto options = std::make_shared<RecordCommandOptions>();
  command
      .AddOption("-o,--output", options->output,
                 "Recording to make; an existing one is renamed to NAME.old")
      .ValueName("NAME.xeno")
      .ShowDefault();
  AddRecordOptions(command, options->recorded);
  command.AddOption("--duration", options->duration_s, "Stop after this many seconds")
      .Range(kMinSeconds, kMaxSeconds)
      .ValueName("SECONDS");
  command
      .AddOption("--boot", options->boot,
                 "Guests that boot during the recording, by name or id, and whose boots "
                 "`xenoscope boot` is to show. They need not exist yet. Recording goes on after "
                 "COMMAND until each has started `xenoscope agent`, which sends what its kernel "
                 "recorded (docs/boot.md)")
      .ValueName("DOMAIN,...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption("--shutdown", options->shutdown,
                 "Guests that shut down during the recording, by name or id, and whose shutdowns "
                 "`xenoscope shutdown` is to show. Recording goes on after COMMAND until Xen has "
                 "removed them. With --active, their agents send what their kernels do "
                 "(docs/shutdown.md)")
      .ValueName("DOMAIN,...")
      .SplitAt(',')
      .Repeatable();
  command
      .AddOption(
          "--share", options->share,
          "Domains among --active whose owners get their own part of the recording, from "
          "their agents: time, waits, VM exits, hypercalls and functions, with other domains "
          "anonymous. `xenoscope report --shared` in the guest shows it (docs/shared.md)")
      .ValueName("DOMAIN,...")
      .SplitAt(',')
      .Repeatable();
  AddContinuousOptions(command, options->continuous);
  command.AddOption("COMMAND", options->command,
                    "Command to run; recording stops when it ends and exits with its status (128 + "
                    "the signal that ended it). Default: record until Ctrl-C or --duration");
  command.SetFooter(
      "Example:\n"
      "  xenoscope record -o web.xeno -e cpu_clk_unhalted:1000000 --passive=web,db -- sleep 10\n"
      "  xenoscope record -o ipc.xeno -e '{cycles,instructions}' -- sleep 10\n"
      "  xenoscope record -o web.xeno --push sqlite:fleet.db -- sleep 60\n"
      "  xenoscope record --boot web1 -o boot.xeno -- xl create web1.cfg\n"
      "  xenoscope record --shutdown web1 --active web1 -o web1.xeno -- xl shutdown web1\n"
      "  xenoscope record --active web1 --share web1 -o web.xeno -- sleep 10\n"
      "  xenoscope record --continuous -o /var/lib/xenoscope --keep 5GB --push sqlite:fleet.db");
  command.SetCallback([&run, options] {
    Check(*options);
    run = [options, request = Parse(*options)] {
      if (options->continuous.continuous) {
        return Outcome(RecordContinuously(request, options->continuous));
      }
      Outcome outcome = RunRecord(request, options->share);
      if (outcome.status.ok() && !options->continuous.push.empty()) {
        outcome.status = PushRecording(request.output, options->continuous.push);
      }
      return outcome;
    };
  });
}

}  // namespace xenoscope::cli
