#include "sampler/recorder.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <future>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/heap.h"
#include "base/signal_name.h"
#include "recording/disk_sync.h"
#include "recording/writer.h"
#include "sampler/agent/save_boot.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/child_process.h"
#include "sampler/collector.h"
#include "sampler/ftrace/ftrace_source.h"
#include "sampler/running_processes.h"
#include "sampler/sandbox.h"
#include "sampler/session_lock.h"
#include "sampler/signals.h"
#include "sampler/sources.h"
#include "sampler/xen/behalf.h"
#include "sampler/xen/domain_monitor.h"
#include "sampler/xen/host.h"
#include "sampler/xen/livepatch_monitor.h"
#include "sampler/xen/privcmd.h"
#include "sampler/xen/trace_buffers.h"
#include "sampler/xen/wanted_buffer.h"
#include "sampler/xen/weight_boost.h"
#include "sampler/xenoprof/xenoprof_source.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainChange;
using recording::DomainInfo;
using recording::RecordingInfo;
using recording::Role;
using recording::SymbolFile;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// The interval between writes of what was collected, and checks of the command and the trace.
constexpr nanoseconds kStepInterval = std::chrono::milliseconds(50);
constexpr nanoseconds kDomainPollInterval = std::chrono::milliseconds(200);
constexpr nanoseconds kSecond = std::chrono::seconds(1);
// Limit of the wait for Xen to remove a domain that is being destroyed: something may keep it, such
// as the buffers of its samples in Xen.
constexpr nanoseconds kLongestRemoval = std::chrono::seconds(3);
constexpr int kCommandTimeoutMs = 2000;
// Limit of bytes for one guest: there may be many guests, and one beyond the limit waits.
constexpr size_t kMaxQueuedGuestBytes = size_t{32} << 20;

// Returns the processor time of this process and of its sandboxes.
nanoseconds ProcessorTime() {
  struct timespec now {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec) + Sandbox::CpuTime();
}

// A source with the file of its samples.
struct Sampling {
  std::unique_ptr<Collector> collector;
  std::optional<recording::SampleWriter> writer;

  Source& source() const { return collector->source(); }
  std::vector<recording::StreamInfo> Streams() const {
    std::vector<recording::StreamInfo> streams;
    collector->RunOnThread([&streams](const Source& source) { streams = source.Streams(); });
    return streams;
  }
  // Writes what has been collected so far.
  absl::Status Write() {
    for (const std::vector<std::byte>& batch : collector->Take()) {
      writer->Append(batch);
      XENOSCOPE_RETURN_IF_ERROR(writer->Flush());
    }
    return absl::OkStatus();
  }
};

// Adds the events of the source.
void AddEvents(const Source& source, std::vector<recording::EventInfo>& events) {
  for (recording::EventInfo& event : source.Events()) {
    event.source = source.Info().name;
    events.push_back(std::move(event));
  }
}

// The recorder of one recording.
class Recorder {
 public:
  Recorder(const RecordRequest& request, const std::function<void(const Progress&)>& progress)
      : request_(request), progress_(progress) {}

  absl::StatusOr<RecordResult> Run();

 private:
  absl::Status ReadHost();
  void CleanUpStale();
  void ReadLinux();
  // Returns whether this is the dom0 of a Xen, once that was examined.
  bool HasXen() const { return domains_ != nullptr; }
  absl::Status PrepareSampling(const SampleRequest& samples);
  absl::Status PrepareThreads();
  void AddSource(std::unique_ptr<Source> source);
  absl::Status MakeRecording();
  absl::Status AddSymbols(SymbolFile::Kind kind, DomainId domain, const std::string& path);
  absl::Status CheckFreeSpace() const;
  absl::Status Start();
  absl::Status StartAll();
  absl::Status Boost();
  absl::Status StartTrace(TraceRequest request);
  absl::Status StartSampling();
  void Loop();
  steady_clock::time_point Due() const;
  absl::Status Step();
  void PollDomains();
  void PollLivepatches();
  // Lets the sources take in a domain that was created.
  void OnDomainCreated(DomainInfo& domain);
  void OnDomainDestroyed(DomainId domain);
  nanoseconds OwnCpu() const;
  void RecordCosts(RecordingInfo& info) const;
  // Returns the trace's description, with its losses so far.
  std::optional<recording::TraceInfo> TraceSoFar() const;
  void SaveSoFar();
  void WriteInfoSoFar();
  void Stop();
  // Stops the sources of this host, and lets those of guests stop.
  void EndSampling();
  void StopTrace();
  void WantLargerBuffer(const recording::TraceInfo& trace);
  void WaitForGuests();
  // Saves the files of guests that shut down, before sampling starts.
  absl::Status SaveFilesOfEnding();
  void SaveFiles();
  void CloseSources();
  // Returns whether the guests whose boots are recorded can be asked for them, or are gone.
  [[nodiscard]] bool HaveBooted() const;
  // Returns whether Xen has removed the guests whose shutdowns are recorded.
  [[nodiscard]] bool HaveEnded();
  void SaveBoots();
  // Returns why the recording ends now, or "".
  std::string ReasonToEnd();
  // Returns whether a signal has come that ends every wait for a guest. May be called by any
  // thread.
  bool IsInterrupted();
  void KeepFirstError(const absl::Status& status);
  Progress Now() const;

  const RecordRequest& request_;
  const std::function<void(const Progress&)>& progress_;
  const EndSignals signals_;
  std::atomic<int> interrupted_by_ = 0;  // number of the signal
  // Whether the loop takes signals itself, as ends of the recording.
  std::atomic<bool> is_looping_ = false;

  std::optional<SessionLock> lock_;
  std::unique_ptr<WeightBoost> boost_;  // null: not asked for, or restored
  std::unique_ptr<DomainDirectory> domains_;
  std::optional<DomainMonitor> domain_monitor_;
  std::optional<LivepatchMonitor> livepatch_monitor_;
  std::string livepatch_lists_;
  steady_clock::time_point next_domain_poll_;
  size_t changes_written_ = 0;  // number of changes in result_.info.changes that were written
  // Domains that were announced to the sources, or that existed at the start.
  std::set<DomainId> known_domains_;
  std::vector<std::pair<const GuestFile*, DomainId>> guest_files_;
  std::vector<Sampling> sampling_;
  std::optional<recording::Writer> writer_;
  std::optional<recording::DiskSync> sync_;  // sync of what writer_ writes
  std::unique_ptr<Xentrace> xentrace_;
  uint64_t trace_bytes_ = 0;  // bytes of the trace, set when xentrace_ ends
  nanoseconds trace_cpu_{0};  // processor time of xentrace, set when it ends
  Tsc trace_began_;
  nanoseconds cpu_before_{0};  // processor time of this process before the recording
  std::optional<ChildProcess> command_;
  bool have_booted_ = false;             // what HaveBooted returned last
  std::vector<DomainId> shutting_down_;  // those of RecordRequest::shutdown
  bool have_ended_ = false;              // what HaveEnded returned last
  // When the last of them began to be destroyed.
  std::optional<steady_clock::time_point> dying_since_;
  steady_clock::time_point started_;
  RecordResult result_;
};

absl::StatusOr<RecordResult> Recorder::Run() {
  XENOSCOPE_RETURN_IF_ERROR(ReadHost());
  XENOSCOPE_ASSIGN_OR_RETURN(lock_, SessionLock::Take());
  if (request_.trace && HasXen()) XENOSCOPE_RETURN_IF_ERROR(CheckTraceIsFree());
  CleanUpStale();
  if (const absl::Status status = Start(); !status.ok()) {
    EndSampling();
    xentrace_.reset();
    boost_.reset();
    interrupted_by_ = SIGTERM;  // the last samples are not wanted
    WaitForGuests();
    CloseSources();
    sync_.reset();
    if (writer_) writer_->Abandon();
    return status;
  }
  is_looping_ = true;
  Loop();
  is_looping_ = false;
  Stop();
  return std::move(result_);
}

bool Recorder::IsInterrupted() {
  if (is_looping_) return false;
  if (const auto signal = signals_.WaitUntil(steady_clock::now())) interrupted_by_ = *signal;
  return interrupted_by_ != 0;
}

absl::Status Recorder::Start() {
  if (request_.samples) XENOSCOPE_RETURN_IF_ERROR(PrepareSampling(*request_.samples));
  if (request_.threads) XENOSCOPE_RETURN_IF_ERROR(PrepareThreads());
  if (interrupted_by_ != 0) {
    return absl::CancelledError(
        "stopped by a signal while waiting for guests, before sampling began: nothing was "
        "recorded");
  }
  XENOSCOPE_RETURN_IF_ERROR(MakeRecording());
  XENOSCOPE_RETURN_IF_ERROR(SaveFilesOfEnding());
  return StartAll();
}

// Reads facts about Linux alone, without Xen below it or outside dom0.
void Recorder::ReadLinux() {
  RecordingInfo& info = result_.info;
  info.host = ReadHostInfo();
  if (info.host.clock_hz == 0) info.host.clock_hz = MeasureTscHz();
  DomainInfo linux;
  linux.id = kDom0;
  linux.name = "Linux";
  info.domains.push_back(std::move(linux));
  if (request_.trace) {
    result_.notes.emplace_back(
        "this is not a Xen dom0, so only this Linux is sampled, without a trace");
  }
}

absl::Status Recorder::ReadHost() {
  result_.info.written_by = request_.written_by;
  result_.info.command = request_.command;
  const bool is_of_xen =
      request_.samples &&
      (!request_.samples->active.empty() || request_.samples->passive || request_.samples->hpet_hz);
  const bool linux_suffices =
      request_.samples && request_.guest_files.empty() && request_.boot.empty() &&
      request_.shutdown.empty() && !is_of_xen &&
      request_.samples->source.value_or(SourceKind::kPerf) == SourceKind::kPerf;
  if (!MayBeDom0() && linux_suffices) {
    ReadLinux();
    return absl::OkStatus();
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(domains_, DomainDirectory::Open());
  RecordingInfo& info = result_.info;
  XENOSCOPE_ASSIGN_OR_RETURN(info.domains, domains_->List());
  domain_monitor_.emplace(*domains_, OpenVcpuCalls().value_or(nullptr), ReadTsc);
  if (auto calls = OpenConsoleCalls(); calls.ok()) livepatch_monitor_.emplace(*std::move(calls));
  info.xen = ReadXenInfo();
  info.host = ReadHostInfo();
  if (const auto pcpus = OnlineApicIds(); pcpus.ok()) {
    info.host.pcpus = static_cast<uint32_t>(pcpus->size());
  }
  for (const DomainInfo& domain : info.domains) known_domains_.insert(domain.id);
  for (const std::string& name : request_.shutdown) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(info.domains, name));
    shutting_down_.push_back(id);
  }
  for (const GuestFile& file : request_.guest_files) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(info.domains, file.domain));
    guest_files_.emplace_back(&file, id);
  }
  return absl::OkStatus();
}

// Cleans up after a recording that was killed, whatever source this one uses.
void Recorder::CleanUpStale() {
  if (!HasXen()) return;
  if (!lock_->stale_note().empty()) {
    XenoprofSource::RecoverKilled(*lock_);
    result_.notes.emplace_back("ended the sampling that a killed recording had left running");
  }
  if (const auto restored = RestoreStaleWeight(); !restored.ok()) {
    result_.notes.emplace_back(Message(restored.status()));
  } else if (*restored) {
    result_.notes.push_back(**restored);
  }
  StopStaleTrace();
}

absl::Status Recorder::PrepareSampling(const SampleRequest& samples) {
  RecordingInfo& info = result_.info;
  XENOSCOPE_ASSIGN_OR_RETURN(OpenedSources opened, OpenSources(samples, info, HasXen(), *lock_,
                                                               [this] { return IsInterrupted(); }));
  std::ranges::move(opened.notes, std::back_inserter(result_.notes));
  if (opened.sources.empty() && !request_.trace) {
    return PreconditionError(
        "no source of samples works here, and --no-trace leaves nothing to record: {}",
        result_.notes.back());
  }
  for (std::unique_ptr<Source>& source : opened.sources) AddSource(std::move(source));
  return absl::OkStatus();
}

absl::Status Recorder::PrepareThreads() {
  absl::StatusOr<std::unique_ptr<FtraceSource>> source =
      FtraceSource::Open({.behalf_of = FindBehalfByXenstore(),
                          .events = request_.kernel_events,
                          .functions = request_.functions},
                         ReadTsc, [] { return ReadRunningThreads(); });
  if (!source.ok()) return InContext(source.status(), "--threads");
  AddSource(*std::move(source));
  return absl::OkStatus();
}

void Recorder::AddSource(std::unique_ptr<Source> source) {
  RecordingInfo& info = result_.info;
  std::ranges::move(source->Notes(), std::back_inserter(result_.notes));
  AddEvents(*source, info.events);
  info.sources.push_back(source->Info());
  for (DomainInfo& domain : info.domains) {
    if (const Role role = source->RoleOf(domain.id); role != Role::kNone) domain.role = role;
  }
  const size_t most = source->WaitsForGuest() ? kMaxQueuedGuestBytes : Collector::kMaxQueuedBytes;
  sampling_.push_back({std::make_unique<Collector>(std::move(source), most), std::nullopt});
}

absl::Status Recorder::MakeRecording() {
  XENOSCOPE_ASSIGN_OR_RETURN(writer_, recording::Writer::Create(request_.output));
  if (HasXen()) {
    XENOSCOPE_RETURN_IF_ERROR(AddSymbols(SymbolFile::Kind::kXensyms, kDom0, "/proc/xen/xensyms"));
  }
  XENOSCOPE_RETURN_IF_ERROR(AddSymbols(SymbolFile::Kind::kKallsyms, kDom0, "/proc/kallsyms"));
  XENOSCOPE_RETURN_IF_ERROR(AddSymbols(SymbolFile::Kind::kModules, kDom0, "/proc/modules"));
  for (const auto& [file, domain] : guest_files_) {
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolFile added,
                               writer_->AddSymbols(file->kind, domain, file->path));
    result_.info.symbols.push_back(std::move(added));
  }
  for (Sampling& sampling : sampling_) {
    XENOSCOPE_ASSIGN_OR_RETURN(sampling.writer,
                               writer_->CreateSamples(sampling.source().Info().name));
  }
  // recording.json must not name a file that a power cut could remove.
  XENOSCOPE_RETURN_IF_ERROR(writer_->Sync());
  return CheckFreeSpace();
}

// Checks that the recording would not end at once for want of space.
absl::Status Recorder::CheckFreeSpace() const {
  constexpr uint64_t kMinFreeBytes = uint64_t{1} << 20;
  struct statvfs disk {};
  if (fstatvfs(writer_->directory().fd(), &disk) != 0 || disk.f_blocks == 0) {
    return absl::OkStatus();
  }
  const uint64_t left = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (left >= kMinFreeBytes) return absl::OkStatus();
  return ExhaustedError(
      "the disk is full: {} kB are left for {}, and a recording needs {} kB to begin; free some "
      "space, or record elsewhere with -o",
      left >> 10, request_.output, kMinFreeBytes >> 10);
}

// Copies symbols of the host. Where they are missing, the report shows addresses. Errors: the disk
// is full.
absl::Status Recorder::AddSymbols(SymbolFile::Kind kind, DomainId domain, const std::string& path) {
  absl::StatusOr<SymbolFile> added = writer_->AddSymbols(kind, domain, path);
  if (added.ok()) {
    result_.info.symbols.push_back(*std::move(added));
    return absl::OkStatus();
  }
  if (added.status().code() == absl::StatusCode::kResourceExhausted) return added.status();
  const bool unmounted = kind == SymbolFile::Kind::kXensyms;
  result_.notes.push_back(
      fmt::format("{}{}", Message(added.status()),
                  unmounted ? ": mount -t xenfs none /proc/xen gives Xen's symbols" : ""));
  return absl::OkStatus();
}

absl::Status Recorder::Boost() {
  if (!HasXen()) {
    return PreconditionError(
        "--boost raises dom0's weight, and this is not a Xen dom0: record without it");
  }
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<WeightCalls> calls, OpenWeightCalls());
  XENOSCOPE_ASSIGN_OR_RETURN(boost_, WeightBoost::Raise(std::move(calls), WeightBoost::kStateFile));
  result_.info.boost = recording::BoostInfo{boost_->before(), boost_->raised()};
  result_.notes.push_back(
      fmt::format("raised dom0's weight from {} to {} for this recording (--boost): it gets more "
                  "time of pCPUs that guests want too",
                  boost_->before(), boost_->raised()));
  return absl::OkStatus();
}

absl::Status Recorder::StartAll() {
  RecordingInfo& info = result_.info;
  if (request_.boost) XENOSCOPE_RETURN_IF_ERROR(Boost());
  if (request_.trace && HasXen()) XENOSCOPE_RETURN_IF_ERROR(StartTrace(*request_.trace));
  info.started = ReadTsc();
  info.wall_clock = ReadWallClock();
  XENOSCOPE_RETURN_IF_ERROR(writer_->WriteInfo(info));
  sync_.emplace(*writer_);
  PollDomains();
  PollLivepatches();
  XENOSCOPE_RETURN_IF_ERROR(StartSampling());
  started_ = steady_clock::now();
  cpu_before_ = ProcessorTime();
  if (request_.on_began) request_.on_began();
  if (!request_.command.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(command_, ChildProcess::Start(request_.command, {}));
  }
  return absl::OkStatus();
}

// Xen makes its trace buffers once, and silently ignores later requests for other sizes.
absl::Status Recorder::StartTrace(TraceRequest request) {
  recording::TraceInfo& trace = result_.info.trace.emplace();
  trace.events = request.events;
  trace.event_mask = request.event_mask.value;
  const uint32_t wanted = std::max(DefaultBufferPages(result_.info.host.pcpus),
                                   ReadWantedBuffer(kWantedBufferFile).value_or(0));
  trace.asked_pages = request.buffer_pages.value_or(wanted);
  request.buffer_pages = trace.asked_pages;
  trace_began_ = ReadTsc();
  XENOSCOPE_ASSIGN_OR_RETURN(File file, writer_->CreateTrace());
  XENOSCOPE_ASSIGN_OR_RETURN(xentrace_,
                             Xentrace::Start(request, std::move(file), writer_->TracePath()));
  trace.buffer_pages = TraceBufferPages().value_or(trace.asked_pages);
  const bool suffices = trace.buffer_pages > trace.asked_pages && !request_.trace->buffer_pages;
  if (trace.buffer_pages == trace.asked_pages || suffices) return absl::OkStatus();
  result_.notes.push_back(
      fmt::format("Xen has trace buffers of {} pages for each pCPU, not of {}: it keeps the size "
                  "of the first trace until the host reboots. Reboot and record with this "
                  "--trace-buffer first, or give Xen the boot option tbuf_size={}",
                  trace.buffer_pages, trace.asked_pages, trace.asked_pages));
  return absl::OkStatus();
}

absl::Status Recorder::StartSampling() {
  for (auto sampling = sampling_.rbegin(); sampling != sampling_.rend(); ++sampling) {
    XENOSCOPE_RETURN_IF_ERROR(sampling->collector->Start());
  }
  return absl::OkStatus();
}

// Returns when the next task is due.
steady_clock::time_point Recorder::Due() const {
  const steady_clock::time_point due = steady_clock::now() + kStepInterval;
  return request_.duration ? std::min(due, started_ + *request_.duration) : due;
}

void Recorder::Loop() {
  steady_clock::time_point next_progress = started_ + kSecond;
  std::string& because = result_.info.stopped_because;
  while (because.empty()) {
    // A signal may have been taken just before the loop began.
    const int before = interrupted_by_.exchange(0);
    const auto signal = before != 0 ? std::optional(before) : signals_.WaitUntil(Due());
    if (signal) {
      because = SignalName(*signal);
      return;
    }
    result_.status = Step();
    because = ReasonToEnd();
    if (steady_clock::now() >= next_domain_poll_) {
      PollDomains();
      PollLivepatches();
    }
    if (steady_clock::now() >= next_progress) {
      next_progress = steady_clock::now() + kSecond;
      progress_(Now());
      SaveSoFar();
      WriteInfoSoFar();
    }
  }
}

std::string Recorder::ReasonToEnd() {
  if (!result_.status.ok()) return std::string(Message(result_.status));
  if (command_ && !result_.command_exit) result_.command_exit = command_->Poll();
  const bool failed = result_.command_exit && !result_.command_exit->Succeeded();
  const bool command_ended = result_.command_exit.has_value();
  const bool waits = !request_.boot.empty() || !shutting_down_.empty();
  if (command_ended && (!waits || failed)) return "command ended";
  if (request_.duration && steady_clock::now() - started_ >= *request_.duration) {
    return "duration over";
  }
  if (!waits || !have_booted_ || !have_ended_ || (command_ && !command_ended)) return "";
  return shutting_down_.empty() ? "guests have booted" : "guests have shut down";
}

bool Recorder::HaveBooted() const {
  return std::ranges::all_of(request_.boot, [this](const std::string& name) {
    const absl::StatusOr<DomainId> id = FindDomain(result_.info.domains, name);
    if (!id.ok()) return false;
    return result_.info.Domain(*id)->died || domains_->OffersAgent(*id);
  });
}

bool Recorder::HaveEnded() {
  const auto is_dying = [this](DomainId id) { return result_.info.Domain(id)->died; };
  if (!std::ranges::all_of(shutting_down_, is_dying)) return false;
  const steady_clock::time_point now = steady_clock::now();
  if (!dying_since_) dying_since_ = now;
  return now - *dying_since_ > kLongestRemoval ||
         std::ranges::none_of(shutting_down_,
                              [this](DomainId id) { return domain_monitor_->Exists(id); });
}

absl::Status Recorder::Step() {
  for (Sampling& sampling : sampling_) {
    XENOSCOPE_RETURN_IF_ERROR(sampling.Write());
    XENOSCOPE_RETURN_IF_ERROR(sampling.collector->status());
  }
  XENOSCOPE_RETURN_IF_ERROR(sync_->status());
  if (xentrace_) XENOSCOPE_RETURN_IF_ERROR(xentrace_->Check());
  return request_.on_step ? request_.on_step() : absl::OkStatus();
}

// Polls domains. Xen keeps the buffers of a passive domain that ends until the session's end.
void Recorder::PollDomains() {
  if (!domain_monitor_) return;
  const std::vector<DomainChange>& changes = result_.info.changes;
  const size_t known = changes.size();
  domain_monitor_->Poll(result_.info);
  have_booted_ = HaveBooted();
  have_ended_ = HaveEnded();
  next_domain_poll_ = steady_clock::now() + kDomainPollInterval;
  for (DomainInfo& domain : result_.info.domains) OnDomainCreated(domain);
  // What cannot be written now is written with the next changes.
  const std::span fresh = std::span(changes).subspan(changes_written_);
  if (writer_->AppendChanges(fresh).ok()) changes_written_ = changes.size();
  for (size_t i = known; i < changes.size(); ++i) {
    if (changes[i].kind == DomainChange::Kind::kDestroyed) OnDomainDestroyed(changes[i].domain);
  }
}

void Recorder::OnDomainCreated(DomainInfo& domain) {
  const bool is_ready = !domain.name.empty() && domain.vcpus > 0 && !domain.died;
  const bool is_sampling = !sampling_.empty() && sampling_.front().collector->started();
  if (!request_.samples || !is_sampling || !is_ready || !known_domains_.insert(domain.id).second)
    return;
  if (!IsToBeSampled(*request_.samples, domain)) return;
  absl::Status why;
  for (Sampling& sampling : sampling_) {
    absl::Status status;
    sampling.collector->RunOnThread([&](Source& source) {
      status = source.OnDomainCreated(domain);
      if (status.ok()) domain.role = source.RoleOf(domain.id);
    });
    if (status.ok()) return;
    if (why.ok()) why = status;
  }
  result_.notes.push_back(
      fmt::format("{} was created during the recording and is in the trace only: {}", domain.name,
                  Message(why)));
}

void Recorder::OnDomainDestroyed(DomainId domain) {
  for (Sampling& sampling : sampling_) {
    sampling.collector->RunOnThread([domain](Source& source) { source.OnDomainDestroyed(domain); });
  }
}

// Saves the list whenever it changes, so that a livepatch that has gone is still known.
void Recorder::PollLivepatches() {
  if (!livepatch_monitor_) return;
  const absl::StatusOr<std::string> list = livepatch_monitor_->Poll();
  if (!list.ok()) {
    result_.notes.emplace_back(Message(list.status()));
    livepatch_monitor_.reset();
    return;
  }
  if (list->empty()) return;
  const bool first = livepatch_lists_.empty();
  livepatch_lists_ += *list;
  absl::StatusOr<SymbolFile> added = writer_->AddSymbolContent(
      SymbolFile::Kind::kLivepatches, kDom0, AsBytes(livepatch_lists_), "Xen's console");
  if (!added.ok()) {
    result_.notes.emplace_back(Message(added.status()));
  } else if (first) {
    result_.info.symbols.push_back(*std::move(added));
  }
}

nanoseconds Recorder::OwnCpu() const {
  const nanoseconds own = ProcessorTime() - cpu_before_;
  return own + (xentrace_ ? xentrace_->CpuTime() : trace_cpu_);
}

// Adds costs to the sources of `info`, which are those of sampling_, in their order.
void Recorder::RecordCosts(RecordingInfo& info) const {
  for (size_t i = 0; i < sampling_.size(); ++i) {
    Collector& collector = *sampling_[i].collector;
    info.sources[i].drains = collector.Drains();
    // A reader meanwhile, or after a kill, can then see which guest is late.
    if (!collector.source().WaitsForGuest()) continue;
    collector.RunOnThread([&problems = info.sources[i].problems](const Source& source) {
      problems = source.FinalNotes();
    });
  }
  info.own_cpu_ns = static_cast<uint64_t>(OwnCpu().count());
}

std::optional<recording::TraceInfo> Recorder::TraceSoFar() const {
  std::optional<recording::TraceInfo> trace = result_.info.trace;
  if (!trace || !xentrace_) return trace;
  trace->lost_records = xentrace_->losses().records();
  trace->lost_cycles = xentrace_->losses().cycles();
  return trace;
}

// Saves for readers meanwhile what sources have beside samples. Where that fails, Save reports it.
void Recorder::SaveSoFar() {
  for (Sampling& sampling : sampling_) sampling.source().SaveSoFar(*writer_).IgnoreError();
}

// Writes recording.json for readers meanwhile, and in case of a kill. If that fails the last one
// stays; a full disk ends the recording when samples or trace cannot be written.
void Recorder::WriteInfoSoFar() {
  RecordingInfo info = result_.info;
  RecordCosts(info);
  info.trace = TraceSoFar();
  for (const Sampling& sampling : sampling_) {
    std::ranges::move(sampling.Streams(), std::back_inserter(info.streams));
  }
  sync_->WriteInfo(std::move(info));
}

// Keeps the first error, which is the one to report.
void Recorder::KeepFirstError(const absl::Status& status) {
  if (result_.status.ok()) result_.status = status;
}

void Recorder::Stop() {
  RecordingInfo& info = result_.info;
  info.stopped = ReadTsc();
  const Progress while_sampling = Now();
  if (request_.on_ending) request_.on_ending();
  EndSampling();
  if (command_) command_->Stop(kCommandTimeoutMs);
  StopTrace();
  if (boost_) KeepFirstError(boost_->Restore());
  WaitForGuests();
  PollDomains();
  PollLivepatches();
  RecordCosts(info);
  // The files fetched below can take long; the accounts are written first, in case that is
  // interrupted.
  sync_->WriteInfo(info);
  SaveFiles();
  CloseSources();
  result_.last = Now();
  // What is fetched and written later takes time, but not from the sampled domains.
  result_.last.elapsed = while_sampling.elapsed;
  result_.last.own_cpu = while_sampling.own_cpu;
  KeepFirstError(sync_->Stop());  // no later success restores what the disk has lost
  SaveBoots();
  info.state = recording::State::kComplete;
  if (!result_.status.ok()) {
    info.state = recording::State::kEndedEarly;
    info.stopped_because = std::string(Message(result_.status));
  }
  KeepFirstError(writer_->WriteInfo(info));
}

void Recorder::EndSampling() {
  for (Sampling& sampling : sampling_) {
    if (!sampling.collector->started()) continue;
    if (sampling.source().WaitsForGuest()) {
      sampling.collector->BeginStop();
    } else {
      KeepFirstError(sampling.collector->Stop());
    }
  }
}

void Recorder::WaitForGuests() {
  RecordingInfo& info = result_.info;
  TscRange sampled;
  info.events.clear();
  for (Sampling& sampling : sampling_) {
    if (sampling.collector->started()) KeepFirstError(sampling.collector->Stop());
    const TscRange by_it = sampling.source().Sampled();
    if (by_it.Empty()) continue;
    sampled = sampled.Empty() ? by_it
                              : TscRange{std::min(sampled.begin, by_it.begin),
                                         std::max(sampled.end, by_it.end)};
  }
  for (Sampling& sampling : sampling_) {
    if (sampling.writer) KeepFirstError(sampling.Write());
    AddEvents(sampling.source(), info.events);
    std::ranges::move(sampling.source().Streams(), std::back_inserter(info.streams));
  }
  if (sampled.Empty()) return;
  if (info.wall_clock) {
    const Clock clock{info.host.clock_hz, ClockSource::kRecorded};
    info.wall_clock->utc_ns += clock.Nanoseconds(sampled.begin - info.started);
    info.wall_clock->utc_ns -= clock.Nanoseconds(info.started - sampled.begin);
  }
  info.started = sampled.begin;
  info.stopped = sampled.end;
}

// At the end of the recording, these guests can no longer be asked.
absl::Status Recorder::SaveFilesOfEnding() {
  for (Sampling& sampling : sampling_) {
    Source& source = sampling.source();
    const auto is_of = [&source](DomainId id) { return source.RoleOf(id) != Role::kNone; };
    if (!source.WaitsForGuest() || std::ranges::none_of(shutting_down_, is_of)) continue;
    XENOSCOPE_RETURN_IF_ERROR(source.Save(*writer_, result_.info));
  }
  return absl::OkStatus();
}

// Saves the files of each guest on its own thread, so that no guest waits for another.
void Recorder::SaveFiles() {
  RecordingInfo& info = result_.info;
  const std::vector<SymbolFile> before = info.symbols;
  std::vector<std::pair<std::future<absl::Status>, std::unique_ptr<RecordingInfo>>> guests;
  for (Sampling& sampling : sampling_) {
    Source* const source = &sampling.source();
    std::ranges::move(source->KernelTraces(), std::back_inserter(info.kernel_traces));
    if (!source->WaitsForGuest()) {
      KeepFirstError(source->Save(*writer_, info));
      continue;
    }
    auto own = std::make_unique<RecordingInfo>();
    own->symbols = before;
    std::future<absl::Status> saved =
        std::async(std::launch::async,
                   [this, source, into = own.get()] { return source->Save(*writer_, *into); });
    guests.emplace_back(std::move(saved), std::move(own));
  }
  for (auto& [saved, own] : guests) {
    KeepFirstError(saved.get());
    std::move(own->symbols.begin() + static_cast<std::ptrdiff_t>(before.size()), own->symbols.end(),
              std::back_inserter(info.symbols));
  }
}

void Recorder::CloseSources() {
  for (size_t i = sampling_.size(); i-- > 0;) {
    Source& source = sampling_[i].source();
    KeepFirstError(source.Close());
    std::vector<std::string> problems = source.FinalNotes();
    result_.notes.insert(result_.notes.end(), problems.begin(), problems.end());
    result_.info.sources[i].problems = std::move(problems);
    result_.info.sources[i].stacks = source.Info().stacks;
  }
}

// Sources and the disk's thread have ended: agents are asked by processes of their own.
void Recorder::SaveBoots() {
  RecordingInfo& info = result_.info;
  const agent::Host host{.tsc_hz = info.host.clock_hz,
                         .read_tsc = ReadTsc,
                         .is_interrupted = [this] { return IsInterrupted(); }};
  for (const std::string& name : request_.boot) {
    const absl::StatusOr<DomainId> id = FindDomain(info.domains, name);
    if (!id.ok()) {
      result_.notes.push_back(fmt::format("--boot: {}", Message(id.status())));
      continue;
    }
    const DomainInfo domain = *info.Domain(*id);
    KeepFirstError(SaveBoot(domain, ConnectVchan, host, *writer_, info, result_.notes));
  }
}

// Lets the first trace after a reboot have larger buffers, where these lost records.
void Recorder::WantLargerBuffer(const recording::TraceInfo& trace) {
  if (trace.lost_records == 0) return;
  const auto pages = WantedBufferPages(trace.buffer_pages, result_.info.host.pcpus);
  if (!pages) return;
  const absl::Status written = WriteWantedBuffer(kWantedBufferFile, *pages);
  result_.notes.push_back(fmt::format(
      "{} records of the trace were lost in buffers of {} pages for each pCPU. {}. Xen cannot "
      "change its buffers until the host reboots; to lose less before, record with fewer events "
      "(--trace-events exits), with --boost, or with a shorter --trace-poll",
      trace.lost_records, trace.buffer_pages,
      written.ok() ? fmt::format("The first recording after a reboot asks for {} pages", *pages)
                   : fmt::format("Record with --trace-buffer {} after a reboot ({})", *pages,
                                 Message(written))));
}

void Recorder::StopTrace() {
  if (!xentrace_) return;
  KeepFirstError(xentrace_->Stop());
  result_.info.trace = TraceSoFar();
  WantLargerBuffer(*result_.info.trace);
  trace_bytes_ = xentrace_->bytes();
  trace_cpu_ = xentrace_->CpuTime();
  xentrace_.reset();
}

Progress Recorder::Now() const {
  Progress now;
  now.elapsed = steady_clock::now() - started_;
  now.own_cpu = OwnCpu();
  now.trace_bytes = xentrace_ ? xentrace_->bytes() : trace_bytes_;
  if (const auto trace = TraceSoFar()) {
    now.lost_records = trace->lost_records;
    const Tsc until = result_.info.stopped.value == 0 ? ReadTsc() : result_.info.stopped;
    const auto traced = static_cast<double>(until - trace_began_) *
                        static_cast<double>(std::max(result_.info.host.pcpus, 1U));
    now.lost_time = std::min(1.0, static_cast<double>(trace->lost_cycles) / traced);
  }
  struct statvfs disk {};
  if (fstatvfs(writer_->directory().fd(), &disk) == 0)
    now.disk_left = disk.f_bavail * disk.f_frsize;
  for (const Sampling& sampling : sampling_) {
    now.sample_bytes += sampling.writer->bytes_written();
    for (const recording::StreamInfo& stream : sampling.Streams()) {
      now.samples += stream.kept;
      now.lost += stream.logged.lost;
      const DomainInfo* domain = result_.info.Domain(stream.vcpu.domain);
      const bool named = domain != nullptr && !domain->name.empty();
      now.of_domain[named ? domain->name : ToString(stream.vcpu.domain)] += stream.kept;
    }
  }
  return now;
}

}  // namespace

absl::StatusOr<RecordResult> Record(const RecordRequest& request,
                                    const std::function<void(const Progress&)>& progress) {
  KeepFreedMemory();  // for the next drain, also in the processes that read for agents
  return Recorder(request, progress).Run();
}

}  // namespace xenoscope::sampler
