#include "sampler/agent/agent_session.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "recording/chunk_reader.h"
#include "recording/info_json.h"
#include "recording/sample_format.h"
#include "recording/sample_reader.h"
#include "sampler/ftrace/event_list.h"

namespace xenoscope::sampler::agent {
namespace {

using recording::EventInfo;
using recording::Sample;
using recording::StreamInfo;

constexpr size_t kMaxSessionPumpBytes =
    size_t{256} * 1024;  // limit of one step, so that other sources get their turn
// The interval between checks whether the user ends a wait.
constexpr std::chrono::milliseconds kSessionPollInterval{100};
// An agent is asked early when it has sent this part of what it may send between two answers.
constexpr size_t kEarlyPingPart = 8;
constexpr size_t kMaxInfo = size_t{1} << 20;
constexpr size_t kMaxAgentErrors = 8;
constexpr size_t kMaxName = 64;
constexpr size_t kMaxPath = 4096;

// Returns an untrusted text without what controls a terminal, cut to `longest` bytes.
std::string Printable(std::string text, size_t longest) {
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  if (text.size() > longest) text.resize(longest);
  return text;
}

std::string Name(const std::string& text) { return Printable(text, kMaxName); }

std::string ToString(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return time == seconds ? fmt::format("{} s", seconds.count())
                         : fmt::format("{} ms", time.count());
}

uint64_t& CounterOf(recording::BufferCounters& counters, Mode mode) {
  if (mode == Mode::kXen) return counters.xen;
  return mode == Mode::kKernel ? counters.kernel : counters.user;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const recording::DomainInfo& domain,
                                                       std::unique_ptr<Channel> channel, Host host,
                                                       const Limits& limits) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<Session> session(
      new Session(domain, std::move(channel), std::move(host), limits));
  XENOSCOPE_RETURN_IF_ERROR(session->Greet());
  return session;
}

Session::Session(recording::DomainInfo domain, std::unique_ptr<Channel> channel, Host host,
                 const Limits& limits)
    : domain_(std::move(domain)),
      channel_(std::move(channel)),
      link_(*channel_),
      host_(std::move(host)),
      limits_(limits),
      ready_until_(host_.now() + limits.ready),
      next_ping_(Instant::max()) {}

absl::Status Session::Greet() {
  Hello own;
  own.program = "xenoscope";
  link_.Queue(own);
  XENOSCOPE_RETURN_IF_ERROR(AwaitHello());
  XENOSCOPE_RETURN_IF_ERROR(TakeHello(*greeting_));
  return CompareClocks();
}

absl::Status Session::AwaitHello() {
  const bool came =
      StepUntil([this] { return greeting_.has_value(); }, host_.now() + limits_.hello);
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  return came ? absl::OkStatus() : TimeoutError("its agent did not answer", limits_.hello);
}

absl::Status Session::TakeHello(const Hello& hello) {
  hello_ = hello;
  hello_.program = Name(hello_.program);
  hello_.kernel = Name(hello_.kernel);
  if (hello_.major != kMajor) {
    return InvalidError("its agent, {}, speaks version {} of the protocol, this xenoscope {}",
                        hello_.program, hello_.major, kMajor);
  }
  constexpr uint64_t kKilo = 1000;  // Xen reports whole kHz
  const bool same_rate =
      hello_.tsc_native && host_.tsc_hz != 0 && hello_.tsc_hz / kKilo == host_.tsc_hz / kKilo;
  clock_ = GuestClock(same_rate);
  if (same_rate && domain_.type == recording::DomainType::kPv) {
    // A PV domain reads the processor's TSC directly. Answers that contradict that still count.
    const Tsc now = host_.read_tsc();
    clock_.Add(now, now.value, now);
  }
  return absl::OkStatus();
}

absl::Status Session::CompareClocks() {
  next_ping_ = host_.now();
  for (int i = 0; i < limits_.first_pings; ++i) {
    Ping();
    const bool answered = StepUntil([this] { return !pending_ping_; }, ready_until_);
    XENOSCOPE_RETURN_IF_ERROR(ended_);
    if (!answered) return TimeoutError("its agent does not answer about its clock", limits_.ready);
  }
  return absl::OkStatus();
}

absl::Status Session::Prepare(const agent::Prepare& how) {
  max_events_ = std::max<size_t>(how.events.size(), 1);
  agent::Prepare asked = how;
  if (hello_.minor < kFirstMinorWithStacks) {
    asked.stack_bytes = 0;
    asked.branch_records = false;
  }
  // Without one rate, there is no host time of the guest's events.
  asked.threads = asked.threads && clock_.Error() && hello_.minor >= kFirstMinorWithThreads;
  if (!asked.threads || hello_.minor < kFirstMinorWithKernelEvents) asked.kernel_events.clear();
  if (!asked.threads || hello_.minor < kFirstMinorWithFunctions) asked.functions.clear();
  asked.cpu_times = asked.threads && hello_.minor >= kFirstMinorWithCpuTimes;
  asked.shutdown = asked.threads && asked.shutdown;
  asked_stack_bytes_ = asked.stack_bytes;
  asked_threads_ = asked.threads;
  link_.Queue(asked);
  const size_t agent_errors = agent_errors_.size();
  StepUntil([&] { return prepared_ || agent_errors_.size() > agent_errors; }, ready_until_);
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (prepared_) return absl::OkStatus();
  const std::optional<std::string> why = TakeRefusal(agent_errors);
  if (why) return UnimplementedError("its agent cannot sample: {}", *why);
  return TimeoutError("its agent does not get ready", limits_.ready);
}

std::optional<std::string> Session::TakeRefusal(size_t known) {
  if (agent_errors_.size() == known) return std::nullopt;
  std::string why = std::move(agent_errors_.back());
  agent_errors_.pop_back();
  return why;
}

absl::StatusOr<bool> Session::Enlist() {
  enlisted_.reset();
  enlisting_ = true;
  link_.Queue(agent::Enlist{});
  const size_t agent_errors = agent_errors_.size();
  StepUntil([&] { return enlisted_ || agent_errors_.size() > agent_errors; },
            host_.now() + limits_.answer);
  enlisting_ = false;
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (enlisted_) return *enlisted_;
  if (agent_errors_.size() == agent_errors) {
    return TimeoutError("its agent does not take part in xenoprof", limits_.answer);
  }
  return PreconditionError("its agent cannot take part in xenoprof: {}", agent_errors_.back());
}

absl::Status Session::TimeoutError(std::string_view what, std::chrono::milliseconds limit) const {
  if (host_.is_interrupted()) {
    return absl::CancelledError(fmt::format("{}, and a signal ended the wait", what));
  }
  return absl::DeadlineExceededError(fmt::format("{} within {}", what, ToString(limit)));
}

void Session::Start(Sink sink) {
  sink_ = std::move(sink);
  for (const recording::ClockAnswer& answer : answers_) {
    if (threads_) sink_->clock_answer(answer);
  }
  started_ = host_.read_tsc();
  sampling_since_ = host_.now();
  link_.Queue(agent::Start{});
  Step();
}

void Session::Step() {
  if (!ended_.ok()) return;
  // The agent may send only so much until it is asked again.
  const bool many = pending_.size() >= limits_.pending_bytes / kEarlyPingPart;
  if (!pending_ping_ && (host_.now() >= next_ping_ || many)) Ping();
  const absl::Status pumped = link_.Pump(kMaxSessionPumpBytes);
  while (ended_.ok()) {
    absl::StatusOr<std::optional<AnyMessage>> message = link_.Next();
    if (!message.ok()) {
      ended_ = message.status();
      break;
    }
    if (!*message) break;
    ended_ = Handle(*std::move(*message));
  }
  if (ended_.ok()) ended_ = pumped;
  if (ended_.ok()) ended_ = CheckLimits();
  if (!ended_.ok()) Forward();  // samples whose time the earlier answers give
}

absl::Status Session::CheckLimits() const {
  if (link_.received() > limits_.bytes) {
    return ExhaustedError("it sent more than {} MB, which is the limit of one recording",
                          limits_.bytes >> 20);
  }
  if (pending_.size() > limits_.pending_bytes) {
    return ExhaustedError("it sends samples faster than {} MB between two answers",
                          limits_.pending_bytes >> 20);
  }
  return absl::OkStatus();
}

bool Session::StepUntil(const std::function<bool()>& done, Instant until) {
  while (true) {
    Step();
    if (done()) return true;
    const Instant now = host_.now();
    if (!ended_.ok() || now >= until || host_.is_interrupted()) return false;
    const Instant next = std::min(until, now + kSessionPollInterval);
    link_.Wait(pending_ping_ ? next : std::min(next, next_ping_), kNoFile);
  }
}

absl::Status Session::Handle(AnyMessage message) {
  if (!greeting_ && !std::holds_alternative<Hello>(message)) {
    return InvalidError("its agent's first message is no hello");
  }
  if (const auto* pong = std::get_if<Pong>(&message)) return TakePong(*pong);
  if (auto* samples = std::get_if<Samples>(&message)) {
    if (!sink_) return InvalidError("it sent samples before it was told to start");
    pending_.insert(pending_.end(), samples->chunks.begin(), samples->chunks.end());
    return absl::OkStatus();
  }
  if (const auto* hello = std::get_if<Hello>(&message)) {
    if (greeting_) return InvalidError("it said hello twice");
    greeting_ = *hello;
    return absl::OkStatus();
  }
  if (const auto* prepared = std::get_if<Prepared>(&message)) return TakePrepared(*prepared);
  if (const auto* account = std::get_if<Account>(&message)) return TakeAccount(*account);
  if (const auto* part = std::get_if<FilePart>(&message)) return TakeFilePart(*part);
  if (const auto* counts = std::get_if<Counts>(&message)) return TakeCounts(*counts);
  if (std::holds_alternative<Shared>(message)) {
    if (shared_ != false) return InvalidError("it keeps what was not shared with it");
    shared_ = true;
    return absl::OkStatus();
  }
  if (const auto* failed = std::get_if<Failed>(&message)) {
    if (file_transfer_) file_transfer_->failed = true;
    if (agent_errors_.size() == kMaxAgentErrors)
      return InvalidError("it sends too many error messages");
    agent_errors_.push_back(Printable(failed->why, kMaxText));
    return absl::OkStatus();
  }
  if (const auto* enlisted = std::get_if<Enlisted>(&message)) {
    if (!enlisting_) return InvalidError("it takes part in xenoprof without being asked");
    enlisted_ = enlisted->again;
    return absl::OkStatus();
  }
  if (std::holds_alternative<agent::Bye>(message)) {
    return absl::UnavailableError("it said good-bye");
  }
  return InvalidError("it sent a message of kind {}, which an agent does not send",
                      message.index() + 1);
}

absl::Status Session::TakePrepared(const Prepared& prepared) {
  const absl::StatusOr<recording::RecordingInfo> info = recording::FromJson(prepared.info);
  if (!info.ok()) return InContext(info.status(), "what it is ready for");
  if (prepared_ || info->events.empty() || info->events.size() > max_events_) {
    return InvalidError("it is ready for {} events; 1 to {} were asked for", info->events.size(),
                        max_events_);
  }
  events_ = info->events;
  for (EventInfo& event : events_) {
    event.name = Name(event.name);
    event.clocked_by = Name(event.clocked_by);
  }
  const bool by_xen = info->sources.size() == 1 && info->sources.front().name == "xenoprof";
  source_ = by_xen ? GuestSource::kXenoprof : GuestSource::kPerf;
  if (asked_stack_bytes_ > 0 && info->sources.size() == 1 && info->sources.front().stacks) {
    stack_bytes_ = asked_stack_bytes_;
    stacks_.emplace(stack_bytes_, limits_.pending_stack_bytes);
  }
  threads_ = asked_threads_ && !info->kernel_traces.empty();
  for (const recording::SourceInfo& source : info->sources) {
    for (const std::string& problem : source.problems) {
      if (threads_ && notes_.size() < kMaxListedEvents) {
        notes_.push_back(Printable(problem, kMaxText));
      }
    }
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status Session::TakeFilePart(const FilePart& part) {
  if (!file_transfer_ || file_transfer_->done || part.kind != file_transfer_->kind) {
    return InvalidError("it sent a file that was not requested");
  }
  file_transfer_->received += part.content.size();
  if (file_transfer_->received > limits_.file_bytes) {
    return ExhaustedError("its file is longer than {} MB", limits_.file_bytes >> 20);
  }
  std::vector<std::byte>& content = file_transfer_->content;
  content.insert(content.end(), part.content.begin(), part.content.end());
  file_transfer_->done = part.last;
  return absl::OkStatus();
}

absl::Status Session::TakeAccount(const Account& account) {
  if (account_) return InvalidError("it gave its accounts twice");
  account_json_ += account.info;
  if (account_json_.size() > kMaxInfo) return ExhaustedError("its accounts are too long");
  if (!account.last) return absl::OkStatus();
  absl::StatusOr<recording::RecordingInfo> info = recording::FromJson(account_json_);
  if (!info.ok()) return InContext(info.status(), "its accounts");
  // These are the periods as they really were.
  for (size_t i = 0; i < std::min(events_.size(), info->events.size()); ++i) {
    events_[i].period = info->events[i].period;
  }
  if (info->sources.size() == 1 && info->sources.front().stacks) {
    left_out_by_agent_ = info->sources.front().stacks->left_out;
  }
  account_ = std::move(info->streams);
  TakeKernelTraces(info->kernel_traces);
  return absl::OkStatus();
}

void Session::TakeKernelTraces(const std::vector<recording::KernelTraceInfo>& traces) {
  if (!threads_) return;
  for (const recording::KernelTraceInfo& trace : traces) {
    const uint32_t vcpu = trace.vcpu.vcpu.value;
    if (vcpu >= domain_.vcpus || kernel_traces_.size() == domain_.vcpus) continue;
    kernel_traces_.push_back({.source = fmt::format("agent-{}", domain_.id.value),
                              .vcpu = {domain_.id, VcpuId{vcpu}},
                              .read = trace.read,
                              .lost = trace.lost});
  }
}

void Session::Ping() {
  const Instant now = host_.now();
  next_ping_ = now + limits_.ping_interval;
  pending_ping_ = PendingPing{++pings_, host_.read_tsc(), now};
  link_.Queue(agent::Ping{pings_});
}

absl::Status Session::TakePong(const Pong& pong) {
  if (!pending_ping_ || pong.number != pending_ping_->number) {
    return InvalidError("it answered a question that was not asked");
  }
  const Tsc now = host_.read_tsc();
  clock_.Add(pending_ping_->before, pong.tsc, now);
  const recording::ClockAnswer answer{pending_ping_->before.value, pong.tsc, now.value};
  if (!sink_) {
    answers_.push_back(answer);
  } else if (threads_) {
    sink_->clock_answer(answer);
  }
  Forward();
  lateness_ = lateness();
  delivered_ = pending_ping_->before;
  pending_ping_.reset();
  clock_.DropOldAnswers();
  return absl::OkStatus();
}

Lateness Session::lateness() const {
  if (!pending_ping_ || !sink_) return lateness_;
  const Instant since = std::max(pending_ping_->at, sampling_since_);
  const std::chrono::nanoseconds waited = host_.now() - since;
  if (waited <= limits_.late) return lateness_;
  return {lateness_.times + 1, std::max(lateness_.longest, waited)};
}

// Forwards what came before an answer about the clock, which was taken before the answer, too.
void Session::Forward() {
  if (pending_.empty()) return;
  const recording::FileHeader header;
  const Bytes header_bytes = std::as_bytes(std::span(&header, 1));
  pending_.insert(pending_.begin(), header_bytes.begin(), header_bytes.end());
  ForwardProcesses(pending_);
  ForwardTraces(pending_);
  ForwardSamples(pending_);
  pending_.clear();
}

void Session::ForwardSamples(Bytes file) {
  auto reader = recording::SampleReader::Open(file, events_.size());
  if (!reader.ok()) return;
  if (stacks_) stacks_->BeginBatch();
  while (const Sample* next = reader->Next()) {
    Sample sample = *next;
    if (!IsValid(sample)) continue;
    if (stacks_ && reader->stack()) {
      sink_->with_stack(sample, stacks_->StackOf(*reader));
    } else {
      sink_->sample(sample);
    }
  }
  refused_.damaged += reader->damage().skipped_samples + reader->damage().invalid_samples;
}

// Records of processes are not placed in the trace, only ordered among samples: an instant
// suffices.
void Session::ForwardProcesses(Bytes file) {
  auto reader = recording::ProcessReader::Open(file);
  if (!reader.ok()) return;
  while (std::optional<recording::ProcessRecord> record = reader->Next()) {
    const auto when = clock_.ToHost(record->when.value);
    record->when = record->at_start || !when ? started_ : std::max(started_, when->begin);
    record->domain = domain_.id;
    const std::string text = Printable(std::string(record->text), kMaxPath);
    record->text = text;
    sink_->process(*record);
  }
  refused_.processes += reader->invalid();
}

// What pages and formats hold is for readers of the recording. They came between the last two
// answers, so the guest's own times of reading them are not needed.
void Session::ForwardTraces(Bytes file) {
  const recording::DrainTimes times{delivered_, delivered_, host_.read_tsc()};
  auto reader = recording::ChunkReader::Open(file);
  if (!reader.ok()) return;
  while (const std::optional<recording::Chunk> chunk = reader->Next()) {
    const recording::ChunkHeader& header = chunk->header;
    if (header.kind == recording::ChunkKind::kCpuTimes) {
      ForwardCpuTimes(*chunk, times);
      continue;
    }
    if (header.kind == recording::ChunkKind::kPerfMaps) {
      if (sink_->perf_maps) sink_->perf_maps(AsText(chunk->entries));
      continue;
    }
    const bool is_pages = header.kind == recording::ChunkKind::kTracePages;
    if (!is_pages && header.kind != recording::ChunkKind::kTraceFormats) continue;
    if (!threads_ || (is_pages && header.vcpu >= domain_.vcpus)) {
      ++refused_.pages;
    } else if (is_pages) {
      sink_->trace_pages(VcpuId{header.vcpu}, times, header.entry_size, chunk->entries);
    } else {
      sink_->trace_formats(AsText(chunk->entries));
    }
  }
}

void Session::ForwardCpuTimes(const recording::Chunk& chunk, const recording::DrainTimes& times) {
  std::vector<recording::CpuTimesEntry> cpus;
  for (Bytes rest = chunk.entries; rest.size() >= chunk.header.entry_size;
       rest = rest.subspan(chunk.header.entry_size)) {
    const auto entry = Load<recording::CpuTimesEntry>(rest, 0);
    const bool is_good = threads_ && entry && entry->cpu < domain_.vcpus &&
                         entry->before <= entry->after && cpus.size() < domain_.vcpus;
    if (is_good) {
      cpus.push_back(*entry);
    } else {
      ++refused_.cpu_times;
    }
  }
  if (!cpus.empty() && sink_->cpu_times) sink_->cpu_times(times, cpus);
}

Refused Session::refused() const {
  Refused refused = refused_;
  if (stacks_) refused.stacks = stacks_->damaged();
  return refused;
}

uint64_t Session::stacks_left_out() const {
  return left_out_by_agent_ + (stacks_ ? stacks_->left_out() : 0);
}

bool Session::IsValid(Sample& sample) {
  // perf in a guest does not see Xen; xenoprof does.
  const bool blind = sample.mode == Mode::kXen && source_ != GuestSource::kXenoprof;
  if (sample.vcpu.vcpu.value >= domain_.vcpus || blind) {
    ++refused_.damaged;
    return false;
  }
  sample.vcpu.domain = domain_.id;
  ReceivedCounts& taken = received_counts_[sample.vcpu.vcpu];
  ++taken.received;
  const auto begin = clock_.ToHost(sample.when.begin.value);
  const auto end = clock_.ToHost(sample.when.end.value - 1);
  TscRange when;
  if (begin && end)
    when = TscRange{begin->begin, end->end}.Intersect({started_, host_.read_tsc() + 1});
  if (!when.Empty() && stopped_ && when.begin >= *stopped_) return false;
  if (when.Empty()) {
    ++refused_.mistimed;
    return false;
  }
  sample.when = when;
  taken.callers += sample.callers.size();
  ++CounterOf(taken.kept, sample.mode);
  return true;
}

void Session::GiveUp(absl::Status why) {
  Step();
  if (ended_.ok()) ended_ = std::move(why);
  link_.Close();
  channel_.reset();
}

bool Session::StepWhileItSends(const std::function<bool()>& done, Instant until) {
  while (true) {
    const uint64_t received = link_.received();
    const Instant now = host_.now();
    if (StepUntil(done, std::min(until, now + limits_.answer))) return true;
    const bool is_silent = link_.received() == received;
    if (is_silent || !ended_.ok() || host_.now() >= until || host_.is_interrupted()) return false;
  }
}

void Session::Stop() {
  const Instant until = host_.now() + limits_.stop;
  stopped_ = host_.read_tsc();
  link_.Queue(agent::Stop{});
  if (StepWhileItSends([this] { return account_.has_value(); }, until)) {
    // The last samples wait for an answer that comes after them.
    StepWhileItSends([this] { return !pending_ping_; }, until);
    if (!pending_.empty() && !pending_ping_) Ping();
    StepWhileItSends([this] { return !pending_ping_ || pending_.empty(); }, until);
  }
  if (ended_.ok() && !account_) {
    ended_ = TimeoutError("it did not stop and give its accounts",
                          host_.now() >= until ? limits_.stop : limits_.answer);
  }
  lateness_ = lateness();
  Forward();
  sink_.reset();
}

void Session::BeginFile(FileKind kind) {
  const Instant now = host_.now();
  if (!files_until_) files_until_ = now + limits_.files;
  file_transfer_ = FileTransfer{.kind = kind, .until = std::min(*files_until_, now + limits_.file)};
  link_.Queue(Want{kind});
}

absl::StatusOr<FilePart> Session::Fetch(FileKind kind) {
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (!file_transfer_) BeginFile(kind);
  if (file_transfer_->kind != kind) return PreconditionError("it is sending another file");
  StepUntil(
      [this] {
        return !file_transfer_->content.empty() || file_transfer_->done || file_transfer_->failed;
      },
      file_transfer_->until);
  FileTransfer file = *std::exchange(file_transfer_, std::nullopt);
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (file.failed) {
    const std::string why = agent_errors_.back();
    agent_errors_.pop_back();
    return NotFoundError("{}", why);
  }
  // A file that keeps coming has a deadline, too.
  const bool goes_on = !file.content.empty() && host_.now() < file.until && !host_.is_interrupted();
  if (file.done || goes_on) {
    FilePart part{kind, file.done, std::exchange(file.content, {})};
    if (!file.done) file_transfer_ = std::move(file);
    return part;
  }
  // The rest of this file could be taken for another one.
  const bool in_all = host_.now() >= *files_until_;
  ended_ = TimeoutError(in_all ? "it did not send its files" : "it did not send its file",
                        in_all ? limits_.files : limits_.file);
  return ended_;
}

absl::StatusOr<Counts> Session::Count(const agent::Count& what) {
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (hello_.minor < kFirstMinorWithCounts) {
    return UnimplementedError("its agent, {}, is too old to count events", hello_.program);
  }
  counts_.emplace();
  link_.Queue(what);
  const size_t agent_errors = agent_errors_.size();
  StepUntil([&] { return counts_->last || agent_errors_.size() > agent_errors; },
            host_.now() + limits_.answer);
  Counts counts = *std::exchange(counts_, std::nullopt);
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (counts.last) return counts;
  const std::optional<std::string> why = TakeRefusal(agent_errors);
  if (why) return UnimplementedError("its agent cannot count: {}", *why);
  ended_ = TimeoutError("it did not give its counts", limits_.answer);
  return ended_;
}

absl::Status Session::TakeCounts(const Counts& part) {
  if (!counts_ || counts_->last) return InvalidError("it sent counts that were not requested");
  for (const std::string& obstacle : part.obstacles) {
    counts_->obstacles.push_back(Printable(obstacle, kMaxText));
  }
  counts_->readings.insert(counts_->readings.end(), part.readings.begin(), part.readings.end());
  counts_->last = part.last;
  const size_t events = counts_->obstacles.size();
  if (events > kMaxEvents || counts_->readings.size() > events * domain_.vcpus) {
    return InvalidError("it sent more counts than its vCPUs and the events can have");
  }
  return absl::OkStatus();
}

absl::Status Session::Share(Bytes bytes) {
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (hello_.minor < kFirstMinorWithShare) {
    return UnimplementedError(
        "its agent, {}, is too old for record --share: use this xenoscope in the guest, too",
        hello_.program);
  }
  if (bytes.size() > kMaxSharedBytes) {
    return ExhaustedError("there are more than {} MB: record for a shorter time",
                          kMaxSharedBytes >> 20);
  }
  const size_t agent_errors = agent_errors_.size();
  shared_ = false;
  do {
    const size_t size = std::min(bytes.size(), kMaxPayload / 2);
    const Bytes part = bytes.first(size);
    bytes = bytes.subspan(size);
    link_.Queue(agent::Share{bytes.empty(), {part.begin(), part.end()}});
  } while (!bytes.empty());
  StepUntil([&] { return *shared_ || agent_errors_.size() > agent_errors; },
            host_.now() + limits_.share);
  const bool is_kept = *std::exchange(shared_, std::nullopt);
  XENOSCOPE_RETURN_IF_ERROR(ended_);
  if (is_kept) return absl::OkStatus();
  const std::optional<std::string> why = TakeRefusal(agent_errors);
  if (why) return PreconditionError("its agent does not keep it: {}", *why);
  ended_ = TimeoutError("it did not take what is shared with it", limits_.share);
  return ended_;
}

void Session::Bye() {
  link_.Queue(agent::Bye{});
  link_.Pump(0).IgnoreError();
}

std::vector<StreamInfo> Session::Streams() const {
  std::vector<StreamInfo> streams;
  for (uint32_t vcpu = 0; vcpu < domain_.vcpus; ++vcpu) {
    StreamInfo& stream = streams.emplace_back();
    const auto found = received_counts_.find(VcpuId{vcpu});
    const ReceivedCounts taken = found == received_counts_.end() ? ReceivedCounts() : found->second;
    if (account_) {
      for (const StreamInfo& own : *account_) {
        if (own.vcpu.vcpu.value == vcpu) stream = own;
      }
    } else {
      stream.logged = taken.kept;
      stream.drained = taken.received;
      stream.kept = taken.received;
    }
    // perf's accounts do not count callers; xenoprof's include callers without a sample.
    if (stream.callers < taken.callers) {
      stream.drained += taken.callers - stream.callers;
      stream.callers = taken.callers;
    }
    stream.source = "agent";
    stream.vcpu = {domain_.id, VcpuId{vcpu}};
    stream.polls.reset();
    // Samples that the agent kept and that did not get here are counted as lost.
    const uint64_t kept = taken.kept.Logged();
    stream.invalid += stream.kept > kept ? stream.kept - kept : 0;
    stream.kept = kept;
    stream.complete = account_.has_value();
  }
  return streams;
}

}  // namespace xenoscope::sampler::agent
