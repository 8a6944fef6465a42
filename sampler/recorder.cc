#include "sampler/recorder.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include "base/error.h"
#include "recording/writer.h"
#include "sampler/child_process.h"
#include "sampler/host.h"
#include "sampler/hpet_clock.h"
#include "sampler/privcmd.h"
#include "sampler/session_lock.h"
#include "sampler/signals.h"
#include "sampler/xenoprof_calls.h"
#include "sampler/xenoprof_session.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainInfo;
using recording::RecordingInfo;
using recording::Role;
using recording::SymbolFile;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::string_view kNoteHpet = "hpet";
constexpr std::string_view kNoteSampling = "sampling";
constexpr int kCommandPatienceMs = 2000;

const char* SignalName(int number) {
  switch (number) {
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "SIGTERM";
  }
}

class Recorder {
 public:
  Recorder(const RecordRequest& request, const std::function<void(const Progress&)>& progress)
      : request_(request), progress_(progress) {}

  absl::StatusOr<RecordResult> Run();

 private:
  absl::Status LookAtHost();
  absl::StatusOr<std::vector<DomainId>> ChoosePassive() const;
  absl::Status ReadySampling(const SampleRequest& samples);
  void RecoverKilledSession();
  absl::Status MakeRecording();
  void AddSymbols(SymbolFile::Kind kind, DomainId domain, const std::string& path);
  absl::Status Start();
  absl::Status StartAll();
  void Loop();
  absl::Status Step();
  void WatchDomains();
  void Stop();
  void EndSampling();
  void StopTrace();
  void Keep(const absl::Status& status);
  absl::Status DrainToDisk();
  Progress Now() const;
  XenoprofSession::Sink Sink();

  const RecordRequest& request_;
  const std::function<void(const Progress&)>& progress_;
  const EndSignals signals_;

  std::optional<SessionLock> lock_;
  std::unique_ptr<DomainDirectory> domains_;
  std::vector<std::pair<const GuestFile*, DomainId>> guest_files_;
  std::unique_ptr<XenoprofCalls> calls_;
  std::unique_ptr<HpetClock> clock_;
  std::unique_ptr<XenoprofSession> session_;  // after what it uses
  std::optional<recording::Writer> writer_;
  std::optional<recording::SampleWriter> sample_writer_;
  std::unique_ptr<Xentrace> xentrace_;
  uint64_t trace_bytes_ = 0;  // when xentrace_ has gone
  std::optional<ChildProcess> command_;
  steady_clock::time_point started_;
  RecordResult result_;
};

absl::StatusOr<RecordResult> Recorder::Run() {
  XENOSCOPE_RETURN_IF_ERROR(LookAtHost());
  XENOSCOPE_ASSIGN_OR_RETURN(lock_, SessionLock::Take());
  if (const absl::Status status = Start(); !status.ok()) {
    EndSampling();
    xentrace_.reset();
    if (writer_) writer_->Abandon();
    return status;
  }
  Loop();
  Stop();
  return std::move(result_);
}

absl::Status Recorder::Start() {
  if (request_.samples) XENOSCOPE_RETURN_IF_ERROR(ReadySampling(*request_.samples));
  XENOSCOPE_RETURN_IF_ERROR(MakeRecording());
  return StartAll();
}

absl::Status Recorder::LookAtHost() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(domains_, DomainDirectory::Open());
  RecordingInfo& info = result_.info;
  XENOSCOPE_ASSIGN_OR_RETURN(info.domains, domains_->List());
  info.written_by = request_.written_by;
  info.command = request_.command;
  info.xen = ReadXenInfo();
  info.host = ReadHostInfo();
  if (const auto pcpus = OnlineApicIds(); pcpus.ok()) {
    info.host.pcpus = static_cast<uint32_t>(pcpus->size());
  }
  for (const GuestFile& file : request_.guest_files) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(info.domains, file.domain));
    guest_files_.emplace_back(&file, id);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DomainId>> Recorder::ChoosePassive() const {
  const std::vector<DomainInfo>& all = result_.info.domains;
  std::vector<DomainId> chosen;
  if (!request_.samples->passive) {
    for (const DomainInfo& domain : all) {
      if (domain.id != kDom0) chosen.push_back(domain.id);
    }
    return chosen;
  }
  for (const std::string& name : *request_.samples->passive) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(all, name));
    if (id == kDom0)
      return InvalidError("--passive={}: dom0 is always sampled, leave it out", name);
    if (std::ranges::find(chosen, id) == chosen.end()) chosen.push_back(id);
  }
  return chosen;
}

absl::Status Recorder::ReadySampling(const SampleRequest& samples) {
  if (!Dom0IsPv()) {
    return UnimplementedError(
        "dom0 is not a PV domain, and xenoprof is for PV domains only: record the trace alone with "
        "--no-samples, or boot Xen with a PV dom0");
  }
  XENOSCOPE_ASSIGN_OR_RETURN(calls_, OpenXenoprofCalls());
  RecoverKilledSession();
  if (samples.hpet_hz) {
    XENOSCOPE_ASSIGN_OR_RETURN(auto registers, OpenHpet());
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<uint32_t> apic_ids, OnlineApicIds());
    XENOSCOPE_ASSIGN_OR_RETURN(clock_,
                               HpetClock::Create(std::move(registers), *samples.hpet_hz, apic_ids));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> passive, ChoosePassive());
  XENOSCOPE_RETURN_IF_ERROR(lock_->Note(clock_ ? kNoteHpet : kNoteSampling));
  XENOSCOPE_ASSIGN_OR_RETURN(
      session_, XenoprofSession::Open(*calls_, passive, samples.buffer_samples, ReadTsc));

  RecordingInfo& info = result_.info;
  std::vector<PmuEvent> events = samples.events;
  if (events.empty()) events = {DefaultEvent(session_->cpu_type(), info.host.clock_hz)};
  XENOSCOPE_RETURN_IF_ERROR(session_->Program(events));

  for (const PmuEvent& event : events) {
    info.events.push_back({event.name, event.code, event.unit_mask, event.period, "pmu"});
    if (samples.hpet_hz) {
      info.events.back().period = info.host.clock_hz / *samples.hpet_hz;
      info.events.back().clocked_by = fmt::format("hpet:{}", *samples.hpet_hz);
    }
  }
  info.sources.push_back(
      {"xenoprof", session_->cpu_type(), static_cast<uint64_t>(samples.drain_interval.count())});
  for (DomainInfo& domain : info.domains) {
    if (domain.id == kDom0) domain.role = Role::kInitiator;
    if (std::ranges::find(passive, domain.id) != passive.end()) domain.role = Role::kPassive;
  }
  return absl::OkStatus();
}

void Recorder::RecoverKilledSession() {
  // NMIs first: giving the counters back under them would crash Xen.
  if (lock_->left() == kNoteHpet) {
    if (const auto registers = OpenHpet(); registers.ok()) HpetClock::Silence(**registers);
  }
  if (!lock_->left().empty()) {
    result_.notes.emplace_back("ended the sampling that a killed recording had left running");
  }
  XenoprofSession::Recover(*calls_);
}

absl::Status Recorder::MakeRecording() {
  XENOSCOPE_ASSIGN_OR_RETURN(writer_, recording::Writer::Create(request_.output));
  AddSymbols(SymbolFile::Kind::kXensyms, kDom0, "/proc/xen/xensyms");
  AddSymbols(SymbolFile::Kind::kKallsyms, kDom0, "/proc/kallsyms");
  AddSymbols(SymbolFile::Kind::kModules, kDom0, "/proc/modules");
  for (const auto& [file, domain] : guest_files_) {
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolFile added,
                               writer_->AddSymbols(file->kind, domain, file->path));
    result_.info.symbols.push_back(std::move(added));
  }
  if (session_) {
    XENOSCOPE_ASSIGN_OR_RETURN(sample_writer_, writer_->CreateSamples("xenoprof"));
  }
  return absl::OkStatus();
}

// What the host itself offers may be missing; the report then shows addresses.
void Recorder::AddSymbols(SymbolFile::Kind kind, DomainId domain, const std::string& path) {
  absl::StatusOr<SymbolFile> added = writer_->AddSymbols(kind, domain, path);
  if (added.ok()) {
    result_.info.symbols.push_back(*std::move(added));
    return;
  }
  const bool unmounted = kind == SymbolFile::Kind::kXensyms;
  result_.notes.push_back(
      fmt::format("{}{}", Message(added.status()),
                  unmounted ? ": mount -t xenfs none /proc/xen gives Xen's symbols" : ""));
}

absl::Status Recorder::StartAll() {
  RecordingInfo& info = result_.info;
  if (request_.trace) {
    XENOSCOPE_ASSIGN_OR_RETURN(xentrace_, Xentrace::Start(*request_.trace, writer_->TracePath()));
    info.trace = recording::TraceInfo{request_.trace->events, request_.trace->buffer_pages};
  }
  info.started = ReadTsc();
  XENOSCOPE_RETURN_IF_ERROR(writer_->WriteInfo(info));
  if (session_) {
    XENOSCOPE_RETURN_IF_ERROR(session_->Start(clock_.get()));
    info.started = session_->sampled().begin;
  }
  started_ = steady_clock::now();
  if (!request_.command.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(command_, ChildProcess::Start(request_.command, {}));
  }
  return absl::OkStatus();
}

void Recorder::Loop() {
  const nanoseconds interval =
      session_ ? request_.samples->drain_interval : nanoseconds(std::chrono::milliseconds(50));
  const nanoseconds second = std::chrono::seconds(1);
  steady_clock::time_point next_watch = started_ + second;
  std::string& because = result_.info.stopped_because;
  while (because.empty()) {
    if (const auto signal = signals_.WaitUntil(steady_clock::now() + interval)) {
      because = SignalName(*signal);
      return;
    }
    result_.status = Step();
    if (!result_.status.ok()) {
      because = std::string(Message(result_.status));
    } else if (command_ && command_->Poll()) {
      because = "command ended";
    } else if (request_.duration && steady_clock::now() - started_ >= *request_.duration) {
      because = "duration over";
    }
    if (steady_clock::now() >= next_watch) {
      next_watch = steady_clock::now() + second;
      WatchDomains();
      progress_(Now());
    }
  }
}

absl::Status Recorder::Step() {
  if (session_) XENOSCOPE_RETURN_IF_ERROR(DrainToDisk());
  return xentrace_ ? xentrace_->Check() : absl::OkStatus();
}

absl::Status Recorder::DrainToDisk() {
  session_->Drain(Sink());
  return sample_writer_->Flush();
}

XenoprofSession::Sink Recorder::Sink() {
  return [this](VcpuRef vcpu, const recording::DrainTimes& times,
                std::span<const recording::Entry> entries) {
    sample_writer_->Append(vcpu, times, entries);
  };
}

// Domains come and go. Xen keeps the buffers of a passive one that dies until the session's end.
void Recorder::WatchDomains() {
  const std::set<DomainId> ids = domains_->Ids();
  if (ids.empty()) return;  // xenstore does not answer now
  std::vector<DomainInfo>& known = result_.info.domains;
  for (DomainInfo& domain : known) domain.died = domain.died || !ids.contains(domain.id);
  const auto is_known = [&](DomainId id) {
    return std::ranges::find(known, id, &DomainInfo::id) != known.end();
  };
  if (std::ranges::all_of(ids, is_known)) return;
  absl::StatusOr<std::vector<DomainInfo>> now = domains_->List();
  if (!now.ok()) return;
  for (DomainInfo& domain : *now) {
    if (!is_known(domain.id)) known.push_back(std::move(domain));
  }
}

// The first thing that went wrong is the one to tell.
void Recorder::Keep(const absl::Status& status) {
  if (result_.status.ok()) result_.status = status;
}

void Recorder::Stop() {
  RecordingInfo& info = result_.info;
  info.stopped = ReadTsc();
  const nanoseconds elapsed = steady_clock::now() - started_;
  EndSampling();
  if (command_) command_->Stop(kCommandPatienceMs);
  StopTrace();
  WatchDomains();
  result_.last = Now();
  result_.last.elapsed = elapsed;
  info.state = recording::State::kComplete;
  Keep(writer_->WriteInfo(info));
}

void Recorder::EndSampling() {
  if (!session_) return;
  if (session_->state() == XenoprofSession::State::kProfiling) {
    Keep(session_->Stop(Sink()));
    result_.info.stopped = session_->sampled().end;
    Keep(sample_writer_->Flush());
  }
  result_.info.streams = session_->Streams();
  const absl::Status closed = session_->Close();
  Keep(closed);
  if (closed.ok()) Keep(lock_->Note(""));
}

void Recorder::StopTrace() {
  if (!xentrace_) return;
  Keep(xentrace_->Stop());
  trace_bytes_ = xentrace_->bytes();
  xentrace_.reset();
}

Progress Recorder::Now() const {
  Progress now;
  now.elapsed = steady_clock::now() - started_;
  now.trace_bytes = xentrace_ ? xentrace_->bytes() : trace_bytes_;
  if (!session_) return now;
  now.sample_bytes = sample_writer_->bytes_written();
  for (const recording::StreamInfo& stream : session_->Streams()) {
    now.samples += stream.kept;
    now.lost += stream.logged.lost;
  }
  return now;
}

}  // namespace

absl::StatusOr<RecordResult> Record(const RecordRequest& request,
                                    const std::function<void(const Progress&)>& progress) {
  return Recorder(request, progress).Run();
}

}  // namespace xenoscope::sampler
