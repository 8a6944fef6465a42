// xenoscope top: the last seconds of a recording while it is being made, again and again.
//
// `xenoscope record` runs as a child process and writes a recording; top shows the report and the
// summary of its last seconds.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/confinement.h"
#include "cli/domain_names.h"
#include "cli/kernel_traces.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/record_options.h"
#include "cli/scratch_recording.h"
#include "cli/screen.h"
#include "cli/store_source.h"
#include "cli/symbol_options.h"
#include "cli/top_of_store.h"
#include "cli/top_source.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "guests/threads/thread_switches.h"
#include "guests/threads/times_within.h"
#include "profile/live_window.h"
#include "profile/pipeline_options.h"
#include "profile/profiler.h"
#include "profile/recorded_processes.h"
#include "profile/sample_choice.h"
#include "profile/trace_input.h"
#include "recording/layout.h"
#include "report/profile/top_view.h"
#include "report/terminal.h"
#include "report/threads/top_threads_view.h"
#include "sampler/signals.h"
#include "sampler/xen/host.h"
#include "symbolizer/live_perf_maps.h"

namespace xenoscope::cli {
namespace {

using profile::LiveWindow;
using recording::Recording;
using recording::RecordingInfo;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct TopOptions {
  std::string input;  // empty: a recording of our own
  RecordOptions recorded;
  std::vector<std::string> record_words;
  std::optional<double> window;  // seconds
  double interval = 1;           // seconds
  std::string by = "domain,mode,function";
  std::string domain;
  std::string event;
  StoreOptions store;  // without a URL: a recording
  bool batch = false;
  uint64_t frames = 0;  // 0: without end
};

// The groupings that the key g chooses in turn.
constexpr std::array<std::string_view, 4> kGroupings = {
    "domain,mode,function", "domain,exit,function", "domain,process,function", "domain,exit"};
// Those of --by thread or container.
constexpr std::array<std::string_view, 4> kThreadGroupings = {
    "domain,thread", "domain,thread,function", "domain,process,thread", "domain,container"};
// A kernel's events wait in a page that is not full for up to 2 s before they are recorded.
constexpr std::chrono::milliseconds kThreadsLag(2500);
constexpr double kWindow = 5;         // seconds of a recording
constexpr double kStoreWindow = 300;  // of a store, whose slices may be a minute long
constexpr std::string_view kKeys = " q quit   d next domain   g next grouping   space pause";

// Whether the columns, which can be parsed, are of threads.
bool ShowsThreads(const std::string& by) {
  const auto columns = report::ParseDimensions(by);
  return columns.ok() && NeedsThreads(*columns);
}

std::span<const std::string_view> GroupingsFor(const std::string& by) {
  if (ShowsThreads(by)) return kThreadGroupings;
  return kGroupings;
}

// The recording, and the moving window of it that is shown.
class View final : public TopSource {
 public:
  View(const TopOptions& options, std::string path, bool own)
      : TopSource(options.by, GroupingsFor(options.by)),
        options_(options),
        path_(std::move(path)),
        own_(own),
        shows_threads_(ShowsThreads(options.by)),
        seconds_(options.window.value_or(kWindow)),
        window_(path_, std::chrono::nanoseconds(static_cast<int64_t>(seconds_ * 1e9)),
                shows_threads_ ? kThreadsLag : std::chrono::nanoseconds(0)) {}

  // Errors: those of reading the recording.
  absl::Status Update() override;
  // Returns whether the recording is complete.
  bool over() const override { return info_.state != recording::State::kRecording; }
  // The first window lies between two updates. It has been written when the third begins, or later.
  int updates_before() const override {
    const std::chrono::duration<double> lag(shows_threads_ ? kThreadsLag : milliseconds(0));
    return 2 + static_cast<int>(lag.count() / options_.interval);
  }
  absl::StatusOr<std::string> Text(const report::TextStyle& style, size_t rows) override;
  void NextDomain() override;

 private:
  LiveWindow::Part LastPart() const;
  absl::Status ReadTrace(const LiveWindow::Part& part);
  absl::Status ReadThreads();
  absl::Status Profile(report::ProfileReport& out);

  const TopOptions& options_;
  std::string path_;
  bool own_;
  bool shows_threads_;
  double seconds_;  // the length of the window
  LiveWindow window_;
  std::optional<DomainId> domain_;
  std::optional<Recording> recording_;
  RecordingInfo info_;
  std::optional<symbolizer::LoadedSymbols> symbols_;
  profile::RecordedProcesses processes_;
  symbolizer::LivePerfMaps perf_maps_;
  LiveWindow::Part part_;
  std::optional<MappedFile> trace_bytes_;
  std::optional<trace::TraceFile> trace_;
  trace::Dialect dialect_;
  std::optional<analysis::AnalysisResult> result_;
  LiveKernels live_kernels_;
  KernelTraces kernels_;                          // of the window
  std::vector<guests::ThreadStates> domains_;     // that have followed these
  std::optional<guests::TimesWithin> in_window_;  // the times of their threads
};

// The window of a complete recording: its last seconds.
LiveWindow::Part View::LastPart() const {
  const auto length = static_cast<Cycles>(seconds_ * static_cast<double>(info_.host.clock_hz));
  const Tsc begin{info_.stopped.value - std::min(length, info_.stopped - info_.started)};
  return {.range = {begin, info_.stopped}, .samples_begin = {}};
}

absl::Status View::Update() {
  XENOSCOPE_ASSIGN_OR_RETURN(recording_, Recording::Open(path_));
  info_ = recording_->info();
  if (!symbols_) {
    XENOSCOPE_ASSIGN_OR_RETURN(symbols_, LoadSymbols(SymbolOptions(), recording_));
    if (!options_.domain.empty()) {
      XENOSCOPE_ASSIGN_OR_RETURN(domain_, ChooseDomain(&info_, options_.domain));
    }
  }
  part_ = over() ? LastPart() : window_.Advance(info_, steady_clock::now(), sampler::ReadTsc());
  XENOSCOPE_RETURN_IF_ERROR(processes_.ReadNew(*recording_));
  processes_.ExportTo(symbols_->resolver->processes());
  if (!over()) perf_maps_.ReadNew(path_, symbols_->resolver->processes());
  XENOSCOPE_RETURN_IF_ERROR(ReadTrace(part_));
  if (shows_threads_) XENOSCOPE_RETURN_IF_ERROR(ReadThreads());
  if (own_) window_.PunchHoles(info_, part_);
  return absl::OkStatus();
}

// Reads and analyses the trace of the window. Records outside its range do no harm.
absl::Status View::ReadTrace(const LiveWindow::Part& part) {
  result_.reset();
  trace_.reset();
  if (!info_.trace || part.range.Empty()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::PlainFile plain_file, recording_->OpenTrace());
  XENOSCOPE_ASSIGN_OR_RETURN(trace_bytes_, MappedFile::Open(plain_file.path(), plain_file.name()));
  const Bytes all = trace_bytes_->bytes();
  const Bytes until = all.first(std::min<uint64_t>(part.trace_end, all.size()));
  const Bytes bytes = until.subspan(std::min<uint64_t>(part.trace_begin, until.size()));
  absl::StatusOr<trace::TraceFile> trace = trace::TraceFile::FromBytes(bytes, plain_file.name());
  if (!trace.ok()) return absl::OkStatus();  // nothing was traced in that time
  trace_ = *std::move(trace);
  dialect_ = profile::CompleteDialect(profile::RecordedDialect(info_), *trace_);
  const analysis::TraceHints hints{recording_->clock(), dialect_, nullptr};
  const auto make = [] {
    std::vector<std::unique_ptr<analysis::Analysis>> analyses;
    analyses.push_back(analysis::MakeRunstates());
    analyses.push_back(analysis::MakeExits());
    analyses.push_back(analysis::MakePvEvents());
    return analyses;
  };
  XENOSCOPE_ASSIGN_OR_RETURN(result_, analysis::AnalyseTrace(*trace_, hints, make, /*threads=*/1));
  result_->kept.reset();
  return absl::OkStatus();
}

// Follows the threads of the window. Events outside its range do no harm.
absl::Status View::ReadThreads() {
  // The last window's traces point to what there was before it, so this is learned only now.
  live_kernels_.Learn(kernels_, domains_);
  in_window_.reset();
  domains_.clear();
  const trace::TraceFile* const xen = trace_ ? &*trace_ : nullptr;
  live_kernels_.pages_begin = part_.samples_begin;
  XENOSCOPE_ASSIGN_OR_RETURN(kernels_,
                             OpenKernelTraces(*recording_, xen, over() ? nullptr : &live_kernels_));
  domains_ = ThreadsOf(kernels_);
  in_window_.emplace(part_.range);
  for (guests::ThreadStates& domain : domains_) domain.SetObserver(&*in_window_);
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(domains_, xen).status());
  return absl::OkStatus();
}

absl::Status View::Profile(report::ProfileReport& out) {
  XENOSCOPE_ASSIGN_OR_RETURN(out.by, report::ParseDimensions(by()));
  profile::SampleSelection selection;
  selection.skipped_bytes = part_.samples_begin;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<recording::EventInfo> events,
                             profile::ReadEvents(*recording_));
  XENOSCOPE_ASSIGN_OR_RETURN(
      selection.events,
      profile::ChooseEvents(*recording_, events, options_.event, selection.skipped_bytes));
  out.domain_name = [this](DomainId domain) { return info_.NameOf(domain); };
  out.process_name = [this](AddressSpaceId space) { return processes_.NameOf(space); };
  std::optional<guests::ThreadSwitches> threads;
  if (!kernels_.traces.empty()) threads.emplace(ThreadsOf(kernels_));
  XENOSCOPE_ASSIGN_OR_RETURN(
      profile::Profiler profiler,
      profile::Profiler::OfRecording({.trace = trace_ ? &*trace_ : nullptr,
                                      .dialect = dialect_,
                                      .resolver = symbols_->resolver.get(),
                                      .threads = threads ? &*threads : nullptr,
                                      .within = part_.range,
                                      .columns = {.by = out.by}},
                                     *recording_, events, selection, processes_));
  static_cast<profile::SampleSet&>(out) = profiler.sample_set();
  XENOSCOPE_ASSIGN_OR_RETURN(static_cast<profile::ProfileResults&>(out), profiler.Run());
  return absl::OkStatus();
}

absl::StatusOr<std::string> View::Text(const report::TextStyle& style, size_t rows) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<correlate::Dimension> columns,
                             report::ParseDimensions(by()));
  report::TopFrame frame;
  frame.recording = own_ ? "xenoscope top" : path_;
  frame.over = over();
  frame.has_xen = !info_.xen.version.empty() || info_.trace.has_value();
  frame.seconds = recording_->clock().Seconds(part_.range.Length());
  frame.trace = result_ ? &*result_ : nullptr;
  if (result_) {
    frame.domains =
        report::TopDomains(*result_, [this](DomainId domain) { return info_.NameOf(domain); });
  }
  if (in_window_) {
    const bool of_threads = profile::HasDimension(columns, correlate::Dimension::kThread);
    frame.threads = report::TopThreadsTable(
        domains_, *in_window_, [this](DomainId domain) { return info_.NameOf(domain); },
        of_threads ? report::ThreadsBy::kThread : report::ThreadsBy::kContainer, domain_);
    frame.note = fmt::format("{}", fmt::join(live_kernels_.left_out, "; "));
  }
  report::ProfileReport profile;
  if (!info_.sources.empty() && !part_.range.Empty()) {
    XENOSCOPE_RETURN_IF_ERROR(Profile(profile));
    frame.profile = &profile;
    frame.lost_samples = profile.lost_in_buffers;
  }
  report::TopLayout layout;
  layout.style = style;
  layout.rows = rows;
  layout.selection.limit = rows > 0 ? rows : kBatchFunctions;
  if (domain_) layout.selection.domains.push_back(*domain_);
  return report::TopText(frame, layout);
}

void View::NextDomain() {
  auto next = info_.domains.begin();
  if (domain_) {
    next = std::ranges::find(info_.domains, *domain_, &recording::DomainInfo::id);
    if (next != info_.domains.end()) ++next;
  }
  domain_ = next == info_.domains.end() ? std::nullopt : std::optional(next->id);
}

// Waits until `due`, taking keys meanwhile. Returns whether to go on.
bool WaitFor(steady_clock::time_point due, const sampler::EndSignals& signals, Screen* screen,
             TopSource& view, bool& paused) {
  if (screen == nullptr) return !signals.WaitUntil(due);
  while (steady_clock::now() < due || paused) {
    constexpr milliseconds kPatience(100);
    if (signals.WaitUntil(steady_clock::now())) return false;
    const std::optional<char> key = screen->Key(kPatience);
    if (!key) continue;
    if (*key == 'q') return false;
    if (*key == ' ') paused = !paused;
    if (*key == 'g') view.NextGrouping();
    if (*key == 'd') view.NextDomain();
    if (*key == 'g' || *key == 'd') return true;  // at once
  }
  return true;
}

absl::Status ShowFrames(const TopOptions& options, const sampler::EndSignals& signals,
                        ScratchRecording* own, TopSource& view) {
  std::unique_ptr<Screen> screen;
  if (!options.batch) {
    XENOSCOPE_ASSIGN_OR_RETURN(screen, Screen::Open());
  }
  const auto interval = std::chrono::nanoseconds(static_cast<int64_t>(options.interval * 1e9));
  bool paused = false;
  if (screen) screen->Show("xenoscope top: waiting for samples ...\n", kKeys);
  for (int update = 0; update < view.updates_before() && !view.over(); ++update) {
    XENOSCOPE_RETURN_IF_ERROR(view.Update());
    if (view.over()) break;
    if (!WaitFor(steady_clock::now() + interval, signals, screen.get(), view, paused)) {
      return absl::OkStatus();
    }
  }
  for (uint64_t frame = 1;; ++frame) {
    if (own != nullptr) XENOSCOPE_RETURN_IF_ERROR(own->Check());
    if (!view.over()) XENOSCOPE_RETURN_IF_ERROR(view.Update());
    const report::TextStyle style =
        screen ? report::TextStyle{screen->columns(), false, false} : report::StdoutStyle();
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string text,
                               view.Text(style, screen ? screen->rows() - 1 : 0));
    if (screen) {
      screen->Show(text, kKeys);
    } else {
      XENOSCOPE_ASSIGN_OR_RETURN(const bool wanted, WriteStdoutBlock(text + "\n"));
      if (!wanted || view.over()) return absl::OkStatus();
    }
    if (frame == options.frames) return absl::OkStatus();
    if (!WaitFor(steady_clock::now() + interval, signals, screen.get(), view, paused)) {
      return absl::OkStatus();
    }
  }
}

absl::Status Top(const TopOptions& options, Command command) {
  const sampler::EndSignals signals;
  if (!options.store.url.empty()) {
    const double window = options.window.value_or(kStoreWindow);
    const auto window_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(window));
    TopOfStoreOptions of_store{options.store, window_ns.count(), options.by, options.domain};
    of_store.store.selection.event = options.event;
    TopOfStore view(std::move(of_store));
    Confine(command);
    return ShowFrames(options, signals, nullptr, view);
  }
  std::optional<ScratchRecording> own;
  if (options.input.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(own, ScratchRecording::Start(options.record_words, signals));
  }
  Confine(command);
  View view(options, own ? own->path() : options.input, own.has_value());
  return ShowFrames(options, signals, own ? &*own : nullptr, view);
}

// With an existing recording --event is the event to show, as in report.
void TakeEventToShow(TopOptions& options) {
  std::vector<std::string>& events = options.recorded.events;
  if (events.size() != 1) return;
  options.event = events.front();
  events.clear();
  std::erase_if(options.record_words,
                [](const std::string& word) { return word.starts_with("--event="); });
}

}  // namespace

void AddTop(Command program, CommandAction& run) {
  auto options = std::make_shared<TopOptions>();
  Command command = program.AddSubcommand("top", "Show domains and their hottest functions live");
  command.AddOption(
      "RECORDING", options->input,
      "Recording in progress, or a complete one, of which the end is shown, with -e of "
      "one of its events (as in report); default: record, and keep nothing");
  command
      .AddOption("--window", options->window,
                 "Length of the interval shown, in seconds; default: 5, of a store 300")
      .Range(1.0, 86400.0)
      .ValueName("SECONDS");
  command.AddOption("-i,--interval", options->interval, "Seconds between two updates")
      .Range(0.5, 3600.0)
      .ValueName("SECONDS")
      .ShowDefault();
  command
      .AddOption("--by", options->by,
                 "Columns, as in report. With thread or container, top shows threads, too: its own "
                 "recording is made with --threads then, and it is 3 seconds behind")
      .Suggest("COLUMN,...", report::DimensionNames())
      .ShowDefault();
  command.AddOption("-d,--domain", options->domain,
                    "Only functions of this domain, by name or number");
  command.AddFlag("-b,--batch", options->batch, "Print frames as text, one after the other");
  command.AddOption("-n,--frames", options->frames,
                    "Number of frames to show; default: until q or Ctrl-C");
  AddStoreOptions(command, options->store);
  AddRecordOptions(command, options->recorded);
  command.SetFooter(
      "Keys: q quit, d next domain, g next grouping, space pause\nExample:\n  xenoscope top\n  "
      "xenoscope top --source vcpu --looks 500\n  xenoscope top --by thread\n  xenoscope top "
      "--by domain,exit,function -e cycles@perf web.xeno\n  xenoscope top -b -n 3 | tee top.txt\n  "
      "xenoscope top "
      "--from-store sqlite:fleet.db --host web1 -i 10");
  command.SetCallback([options, command, &run] {
    if (const auto by = report::ParseDimensions(options->by); !by.ok()) {
      ThrowUsageError("--by", std::string(Message(by.status())));
    }
    options->record_words = GivenRecordOptions(command);
    const bool is_own = options->input.empty() && options->store.url.empty();
    if (is_own && ShowsThreads(options->by) && !options->recorded.threads) {
      options->recorded.threads = true;
      options->record_words.emplace_back("--threads");
    }
    CheckStoreOptions(options->store);
    const bool has_store = !options->store.url.empty();
    if (has_store && !options->input.empty()) {
      ThrowUsageError("--from-store", "is instead of a recording");
    }
    if (has_store || !options->input.empty()) TakeEventToShow(*options);
    ParseRecordOptions(options->recorded);
    if ((has_store || !options->input.empty()) && !options->record_words.empty()) {
      ThrowUsageError(options->record_words.front(),
                      "goes with a recording that top makes, not with what is there");
    }
    options->batch = options->batch || isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0;
    run = [options, command] { return Top(*options, command); };
  });
}

}  // namespace xenoscope::cli
