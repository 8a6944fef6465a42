#include "sampler/agent/agent_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "recording/writer.h"

namespace xenoscope::sampler {
namespace {

using agent::FileKind;
using agent::GuestSource;
using agent::Session;
using recording::EventInfo;
using recording::Sample;
using recording::SymbolFile;

constexpr auto kStep = std::chrono::milliseconds(20);
// After a step in which so many bytes came the next one is at once: as many may have come again.
constexpr uint64_t kBytesOfBusyStep = uint64_t{64} << 10;

struct GuestFile {
  FileKind file;
  SymbolFile::Kind kind;
  uint16_t since;  // minor version of the protocol from which on agents have it
  const char* what;
};
constexpr GuestFile kFiles[] = {
    {FileKind::kKallsyms, SymbolFile::Kind::kKallsyms, 0, "its kernel's symbols"},
    {FileKind::kModules, SymbolFile::Kind::kModules, 0, "its kernel's symbols"},
    {FileKind::kVdso, SymbolFile::Kind::kVdso, 2, "its vDSO"},
    {FileKind::kPerfMaps, SymbolFile::Kind::kPerfMaps, 2, "what its compilers made"},
    {FileKind::kBootTrace, SymbolFile::Kind::kBootTrace, agent::kFirstMinorWithBootTrace,
     "the trace of its boot"}};

void Add(recording::ProcessChunk& chunk, const recording::ProcessRecord& record) {
  using recording::MapEntry;
  recording::ProcessEntry entry;
  entry.type = static_cast<uint8_t>(record.type);
  entry.flags = static_cast<uint8_t>((record.by_exec ? recording::kByExec : 0) |
                                     (record.at_start ? recording::kAtStart : 0));
  entry.pid = record.pid;
  entry.tid = record.tid;
  entry.parent = record.parent;  // its number of a file, too
  entry.when = record.when.value;
  MapEntry map;
  map.address = record.map.begin;
  map.length = record.map.end - record.map.begin;
  map.offset = record.map.offset;
  map.build_id_size =
      static_cast<uint8_t>(std::min(record.map.build_id.size(), map.build_id.size()));
  std::memcpy(map.build_id.data(), record.map.build_id.data(), map.build_id_size);
  const bool has_map = record.type == recording::ProcessEntryType::kMap ||
                       record.type == recording::ProcessEntryType::kFileId;
  chunk.Add(entry, has_map ? &map : nullptr, record.text);
}

// An agent's own limit, with room for what comes later than it was sent.
constexpr double kStackBytesPerSecond = 2 * StackRate::kBytesPerSecondOfAgent;

// Returns the requests to an agent, in order until one succeeds: xenoprof works in PV domains only,
// and a guest may have neither branch records nor counters for dom0's events.
std::vector<agent::Prepare> PrepareFallbacks(const agent::Prepare& wanted) {
  std::vector<agent::Prepare> ways = {wanted};
  agent::Prepare way = wanted;
  way.source = GuestSource::kPerf;
  if (way != wanted) ways.push_back(way);
  way.threads = false;
  way.shutdown = false;
  way.kernel_events.clear();
  way.functions.clear();
  if (way != ways.back()) ways.push_back(way);
  way.branch_records = false;
  if (way != ways.back()) ways.push_back(way);
  way.events.clear();
  if (way != ways.back()) ways.push_back(way);
  return ways;
}

// Returns why an agent's callers in user mode are found by frame pointers though others were asked
// for; empty: they are not.
std::string NoteOnCallers(const Session& session, const agent::Prepare& how) {
  if (session.source() != GuestSource::kPerf || (how.stack_bytes == 0 && !how.branch_records)) {
    return "";
  }
  if (session.hello().minor < agent::kFirstMinorWithStacks) {
    return fmt::format(
        "its agent, {}, is too old for --call-graph {}, and follows frame pointers: use this "
        "xenoscope in the guest, too",
        session.hello().program, how.stack_bytes > 0 ? "dwarf" : "lbr");
  }
  if (how.stack_bytes > session.stack_bytes()) {
    return "its agent sends no stacks, as its owner has not allowed that (xenoscope agent "
           "--allow-stacks), and follows frame pointers";
  }
  return "";
}

// Returns why an agent sends no threads though they were asked for.
std::string NoteOnThreads(const Session& session) {
  if (session.hello().minor < agent::kFirstMinorWithThreads) {
    return fmt::format(
        "its agent, {}, is too old to record threads: use this xenoscope in the "
        "guest, too",
        session.hello().program);
  }
  return session.clock().Error() ? "its agent sends no threads"
                                 : "its threads are not recorded, as its clock runs at another "
                                   "rate than the host's";
}

// Returns which events and functions of its kernel an agent does not send though they were asked
// for, and why.
std::vector<std::string> NotesOnKernelEvents(const Session& session, const agent::Prepare& how) {
  std::vector<std::string> notes = session.notes();
  const auto note_if_older = [&](uint16_t minor, const char* option) {
    if (!session.threads() || session.hello().minor >= minor) return;
    notes.push_back(
        fmt::format("its agent, {}, is too old for {}: use this xenoscope in the guest, too",
                    session.hello().program, option));
  };
  if (!how.kernel_events.empty()) {
    note_if_older(agent::kFirstMinorWithKernelEvents, "--guest-events");
  }
  if (!how.functions.empty()) note_if_older(agent::kFirstMinorWithFunctions, "--guest-functions");
  if (how.shutdown) note_if_older(agent::kFirstMinorWithShutdown, "--shutdown");
  return notes;
}

// Returns why an agent sends no trace of its guest's boot though it was asked for.
std::string NoteOnBoot(const Session& session) {
  return fmt::format(
      "its agent, {}, is too old for record --boot: use this xenoscope in the guest, too",
      session.hello().program);
}

// Returns what an agent does that could not do all that was wanted.
std::string Instead(const agent::Prepare& how, const agent::Prepare& wanted,
                    const Session& session) {
  if (how.events != wanted.events || how.source != wanted.source) {
    return fmt::format("; it samples {} instead", session.events().front().name);
  }
  if (how.branch_records != wanted.branch_records) {
    return "; its call chains follow frame pointers instead";
  }
  return "; its threads are not recorded";
}

// Opens a session. `note` says what the agent could not do, if it does something else instead.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(const recording::DomainInfo& domain,
                                                     const AgentRequest& request,
                                                     const AgentSource::Connect& connect,
                                                     const agent::Host& host, std::string& note) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Channel> channel, connect(domain.id));
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                             Session::Open(domain, std::move(channel), host, request.limits));
  agent::Prepare wanted = request.how;
  // The rest is for the samples, so that they go on when stacks have reached their limit.
  wanted.all_stack_bytes = request.limits.bytes / 4 * 3;
  for (const agent::Prepare& how : PrepareFallbacks(wanted)) {
    const absl::Status ready = session->Prepare(how);
    if (ready.ok() && note.empty()) return session;
    if (ready.ok()) {
      note += Instead(how, wanted, *session);
      return session;
    }
    if (!absl::IsUnimplemented(ready)) return ready;
    if (note.empty()) note = Message(ready);
  }
  return UnimplementedError("{}", note);
}

// Returns "xenoscope 0.1.0, Linux 6.1".
std::string ProgramOf(const agent::Hello& hello) {
  return hello.kernel.empty() ? hello.program
                              : fmt::format("{}, Linux {}", hello.program, hello.kernel);
}

// Returns whether it counts the events that dom0 programs, and as many.
bool IsMemberOfXenoprof(const Session& session, const agent::Prepare& how) {
  return how.source == GuestSource::kXenoprof && session.source() == GuestSource::kXenoprof &&
         session.events().size() == std::max<size_t>(how.events.size(), 1);
}

}  // namespace

recording::SourceInfo AgentSourceInfo(DomainId domain) {
  recording::SourceInfo info;
  info.name = fmt::format("agent-{}", domain.value);
  info.drain_interval_ns = static_cast<uint64_t>(std::chrono::nanoseconds(kStep).count());
  return info;
}

absl::Status SaveAgentFiles(const recording::DomainInfo& domain, const FetchPart& fetch,
                            const recording::Writer& writer, recording::RecordingInfo& info) {
  for (const GuestFile& file : kFiles) {
    if (info.Symbols(file.kind, domain.id) != nullptr) continue;  // the user's own has priority
    absl::StatusOr<agent::FilePart> part = fetch(file.kind);
    if (!part.ok() || part->content.empty()) continue;
    const auto next = [&, first = true]() mutable -> absl::StatusOr<Bytes> {
      if (!std::exchange(first, false)) {
        if (part->last) return Bytes();
        part = fetch(file.kind);
      }
      XENOSCOPE_RETURN_IF_ERROR(part.status());
      return Bytes(part->content);
    };
    absl::StatusOr<SymbolFile> added = writer.AddSymbolParts(
        file.kind, domain.id, next, DomainLabel(domain.id, domain.name) + "'s agent");
    if (!part.ok()) continue;
    XENOSCOPE_RETURN_IF_ERROR(added.status());
    info.symbols.push_back(*std::move(added));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<AgentSource>> AgentSource::Open(const recording::DomainInfo& domain,
                                                               const AgentRequest& request,
                                                               const Connect& connect,
                                                               const agent::Host& host) {
  std::string note;
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                             OpenSession(domain, request, connect, host, note));
  const bool is_member = IsMemberOfXenoprof(*session, request.how);
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<AgentSource> source(
      new AgentSource(std::move(session), host, is_member, request));
  if (!note.empty()) source->notes_.push_back(fmt::format("{}: {}", source->Name(), note));
  if (request.how.threads && note.empty() && !source->session_->threads()) {
    source->notes_.push_back(
        fmt::format("{}: {}", source->Name(), NoteOnThreads(*source->session_)));
  }
  for (const std::string& of_agent : NotesOnKernelEvents(*source->session_, request.how)) {
    source->notes_.push_back(fmt::format("{}: {}", source->Name(), of_agent));
  }
  if (const std::string callers = NoteOnCallers(*source->session_, request.how); !callers.empty()) {
    source->notes_.push_back(fmt::format("{}: {}", source->Name(), callers));
  }
  return source;
}

AgentSource::AgentSource(std::unique_ptr<Session> session, agent::Host host, bool is_member,
                         const AgentRequest& request)
    : session_(std::move(session)),
      host_(std::move(host)),
      is_member_(is_member),
      boot_(request.boot),
      chunk_(session_->domain().id, {.piece_bytes = session_->stack_bytes(),
                                     .bytes_per_second = kStackBytesPerSecond,
                                     .bytes = request.limits.bytes}) {}

recording::SourceInfo AgentSource::Info() const {
  recording::SourceInfo info = AgentSourceInfo(domain().id);
  if (session_->stack_bytes() == 0) return info;
  info.stacks = chunk_.info();
  info.stacks->left_out += session_->stacks_left_out();
  return info;
}

std::string AgentSource::Name() const { return DomainLabel(domain().id, domain().name); }

absl::Status AgentSource::NumberEvents(size_t first) {
  const std::vector<EventInfo>& events = session_->events();
  if (is_member_) first = 0;
  if (first + events.size() > recording::kMaxRecordingEvents) {
    return ExhaustedError(
        "there are too many different events, the limit is {}: give fewer with -e and "
        "--agent-event, or record fewer active domains",
        recording::kMaxRecordingEvents);
  }
  numbers_.resize(events.size());
  std::iota(numbers_.begin(), numbers_.end(), static_cast<uint8_t>(first));
  return absl::OkStatus();
}

std::vector<EventInfo> AgentSource::Events() const {
  if (is_member_) return {};
  return session_->events();  // after Stop with the periods as they really were
}

recording::Role AgentSource::RoleOf(DomainId id) const {
  return id == domain().id ? recording::Role::kActive : recording::Role::kNone;
}

std::vector<std::string> AgentSource::Notes() const {
  std::vector<std::string> notes = notes_;
  const auto error = session_->clock().Error();
  notes.push_back(fmt::format(
      "{} is active: its agent ({}) {}; {}", Name(), ProgramOf(session_->hello()),
      is_member_ ? "takes part in xenoprof" : "samples it",
      error ? fmt::format("the error of its clock is at most {} cycles", *error)
            : std::string("its clock runs at another rate than the host's, so the times of its "
                          "samples are accurate to fractions of a second only")));
  return notes;
}

absl::Status AgentSource::Start() {
  sampled_.begin = host_.read_tsc();
  session_->Start(
      {.sample = [this](const Sample& sample) { AddPending(sample); },
       .process =
           [this](const recording::ProcessRecord& record) {
             // A guest does not decide on whose behalf something works.
             if (record.type == recording::ProcessEntryType::kBehalf) return;
             Add(processes_, record);
           },
       .with_stack = [this](const Sample& sample,
                            const recording::UserStack* stack) { AddPending(sample, stack); },
       .trace_pages =
           [this](VcpuId vcpu, const recording::DrainTimes& times, uint32_t page_size,
                  Bytes pages) {
             traces_.AppendTracePages({domain().id, vcpu}, times, page_size, pages);
           },
       .trace_formats =
           [this](std::string_view text) { traces_.AppendTraceFormats(domain().id, text); },
       .cpu_times =
           [this](const recording::DrainTimes& times,
                  std::span<const recording::CpuTimesEntry> cpus) {
             traces_.AppendCpuTimes(domain().id, times, cpus);
           },
       .clock_answer =
           [this](const recording::ClockAnswer& answer) {
             traces_.AppendClockAnswers(domain().id, {&answer, 1});
           },
       .perf_maps = [this](std::string_view text) { perf_maps_.Add(text); }});
  due_ = host_.now();
  return absl::OkStatus();
}

void AgentSource::AddPending(const Sample& sample, const recording::UserStack* stack) {
  PendingSample& pending = AddPending(sample);
  pending.with_stack = true;
  if (stack == nullptr) return;
  pending.stack = std::make_unique<PendingStack>();
  pending.stack->registers = stack->registers;
  pending.stack->bytes.assign(stack->bytes.begin(), stack->bytes.end());
}

AgentSource::PendingSample& AgentSource::AddPending(const Sample& sample) {
  PendingSample& pending = pending_samples_.emplace_back();
  recording::TimedEntry& entry = pending.entry;
  entry.address = sample.address;
  entry.mode = static_cast<uint8_t>(sample.mode);
  entry.event = numbers_[sample.event];
  entry.vcpu = sample.vcpu.vcpu.value;
  if (sample.thread) {
    entry.pid = sample.thread->pid;
    entry.tid = sample.thread->tid;
  }
  entry.begin = sample.when.begin.value;
  entry.end = sample.when.end.value;
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    pending.callers.push_back(sample.callers.at(i));
    // perf in a guest has no callers in Xen, whatever the agent sends.
    const Mode mode = sample.callers.ModeAt(i);
    if (mode == Mode::kXen && is_member_) {
      ++entry.xen_callers;
    } else {
      ++(mode == Mode::kUser ? entry.user_callers : entry.kernel_callers);
    }
  }
  return pending;
}

void AgentSource::Step() {
  const uint64_t received = session_->received();
  session_->Step();
  due_ = host_.now();
  if (session_->received() - received < kBytesOfBusyStep) due_ += kStep;
}

absl::Status AgentSource::Collect(recording::SampleWriter& writer) {
  Step();
  // Readers require each source's samples in the order of time.
  Write(session_->status().ok() ? session_->Delivered() : host_.read_tsc(), writer);
  return absl::OkStatus();
}

void AgentSource::Write(Tsc until, recording::SampleWriter& writer) {
  writer.Append(domain().id, processes_);
  processes_.Clear();
  writer.Append(Bytes(traces_.Take()));
  const auto later = std::stable_partition(
      pending_samples_.begin(), pending_samples_.end(),
      [until](const PendingSample& pending) { return pending.entry.end <= until.value; });
  std::stable_sort(
      pending_samples_.begin(), later,
      [](const PendingSample& a, const PendingSample& b) { return a.entry.end < b.entry.end; });
  chunk_.Begin(host_.now());
  for (auto pending = pending_samples_.begin(); pending != later; ++pending) {
    if (!pending->with_stack) {
      chunk_.Add(pending->entry, pending->callers);
      continue;
    }
    std::optional<recording::UserStack> stack;
    if (pending->stack) {
      stack = recording::UserStack{pending->stack->registers, pending->stack->bytes};
    }
    chunk_.Add(pending->entry, stack ? &*stack : nullptr, pending->callers, writer);
  }
  chunk_.Write(writer);
  pending_samples_.erase(pending_samples_.begin(), later);
}

absl::Status AgentSource::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("agents are asked only before sampling starts");
}

void AgentSource::OnDomainDestroyed(DomainId id) {
  if (id == domain().id) session_->GiveUp(absl::UnavailableError("its domain has gone"));
}

void AgentSource::StopSession() {
  if (!is_stopped_) session_->Stop();
  is_stopped_ = true;
}

absl::Status AgentSource::Stop(recording::SampleWriter& writer) {
  sampled_.end = host_.read_tsc();  // the recording does not include the wait for its agent
  StopSession();
  Write(Tsc{std::numeric_limits<uint64_t>::max()}, writer);
  return absl::OkStatus();
}

absl::StatusOr<agent::FilePart> AgentSource::Fetch(SymbolFile::Kind kind) {
  const auto* const file = std::ranges::find(kFiles, kind, &GuestFile::kind);
  const bool is_boot = kind == SymbolFile::Kind::kBootTrace;
  bool known = file != std::end(kFiles) && (boot_ || !is_boot);
  if (known && session_->hello().minor < file->since) {
    known = false;
    if (is_boot) missing_.push_back(NoteOnBoot(*session_));
  }
  if (!known) return agent::FilePart{.last = true, .content = {}};
  const bool is_perf_maps = kind == SymbolFile::Kind::kPerfMaps;
  if (!session_->status().ok())
    return is_perf_maps ? SentPerfMaps() : agent::FilePart{.last = true, .content = {}};
  auto part = session_->Fetch(file->file);
  if (!part.ok()) {
    missing_.push_back(fmt::format("{}: {}", file->what, Message(part.status())));
  } else if (is_boot && part->last) {
    auto answers = recording::SampleWriter::InMemory();
    // In this file chunks are of domain 0, as the guest does not know its number.
    answers.AppendClockAnswers(kDom0, session_->answers());
    const std::vector<std::byte> chunk = answers.Take();
    part->content.insert(part->content.end(), chunk.begin(), chunk.end());
  }
  return part;
}

agent::FilePart AgentSource::SentPerfMaps() {
  const std::string text = std::exchange(perf_maps_, PerfMapText(kMaxPerfMapBytes)).Take();
  const Bytes bytes = AsBytes(std::string_view(text));
  return {.kind = FileKind::kPerfMaps, .last = true, .content = {bytes.begin(), bytes.end()}};
}

absl::Status AgentSource::Save(const recording::Writer& writer, recording::RecordingInfo& info) {
  return SaveAgentFiles(
      domain(), [this](SymbolFile::Kind kind) { return Fetch(kind); }, writer, info);
}

absl::Status AgentSource::Close() {
  // A member that never started has Xen's buffers all the same.
  if (is_member_) StopSession();
  session_->Bye();
  return absl::OkStatus();
}

std::vector<std::string> AgentSource::FinalNotes() const {
  std::vector<std::string> lines;
  const auto say = [&](const std::string& what) {
    lines.push_back(fmt::format("{}: {}", Name(), what));
  };
  if (!session_->status().ok() && missing_.empty()) {
    say(fmt::format("its agent was given up, its samples are kept up to there: {}",
                    Message(session_->status())));
  }
  if (const agent::Lateness late = session_->lateness(); late.times > 0) {
    say(
        fmt::format("its agent was late {}, for up to {:.1f} s: the guest had too little CPU time "
                    "or its agent hung, and samples of that time may be missing",
                    late.times == 1 ? "once" : fmt::format("{} times", late.times),
                    std::chrono::duration<double>(late.longest).count()));
  }
  for (const std::string& missing : missing_) say(missing);
  for (const std::string& complaint : session_->agent_errors()) {
    say(fmt::format("its agent says: {}", complaint));
  }
  const agent::Refused refused = session_->refused();
  if (refused.damaged + refused.mistimed + refused.processes > 0) {
    say(
        fmt::format("{} samples of its agent were refused as damaged, {} as taken outside the "
                    "recording; {} entries about processes were damaged",
                    refused.damaged, refused.mistimed, refused.processes));
  }
  if (refused.pages > 0) {
    say(
        fmt::format("{} parts of its kernel's trace were refused: they were not asked for, or of "
                    "vCPUs that it has not",
                    refused.pages));
  }
  if (refused.cpu_times > 0) {
    say(
        fmt::format("{} readings of its kernel's CPU times were refused as damaged, or of vCPUs "
                    "that it has not",
                    refused.cpu_times));
  }
  if (refused.stacks > 0) {
    say(fmt::format("{} stacks of its samples were refused as damaged, or larger than {} bytes",
                    refused.stacks, session_->stack_bytes()));
  }
  if (const uint64_t jumps = session_->clock().jumps(); jumps > 0) {
    say(fmt::format("its clock jumped {} times", jumps));
  }
  return lines;
}

}  // namespace xenoscope::sampler
