#include "sampler/agent/agent_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/error.h"
#include "recording/info_json.h"
#include "sampler/agent/fd_channel.h"
#include "sampler/perf/jit_and_vdso.h"

namespace xenoscope::sampler::agent {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMaxPumpBytes = size_t{64} * 1024;
// Limit of bytes that wait for a recorder. Beyond it samples stay in the kernel's ring, which
// counts its losses, and no other request is handled.
constexpr size_t kMaxQueuedBytes = size_t{4} << 20;
// The same for what can wait in the kernel's rings. The less is queued, the sooner a ping is
// answered.
constexpr size_t kMaxQueuedPages = size_t{2} << 20;
// Limit of the bytes between two answers up to which what can wait is sent. The rest is for
// samples.
constexpr size_t kMaxPagesBetweenAnswers = kMaxBytesBetweenAnswers / 2;
// Room from which on it is worth while to go on with what waits.
constexpr size_t kWorthwhileRoom = size_t{256} << 10;
// Limits of what is sent after the request to stop; the rest is lost. A recorder waits for ten
// seconds, and keeps 64 MB of what comes meanwhile.
constexpr auto kLongestEnd = std::chrono::seconds(5);
constexpr size_t kMaxBytesAtEnd = size_t{48} << 20;
// Where this process was told to end, perhaps as its guest shuts down and waits for it.
constexpr auto kLongestFarewell = std::chrono::milliseconds(500);
// Limit of bytes of a file that are read ahead of the recorder.
constexpr size_t kReadAheadBytes = size_t{256} << 10;
constexpr auto kIdle = std::chrono::hours(1);
// The interval between checks whether a slow recorder reads again. A ring of vchan has 128 KiB.
constexpr auto kServerPollInterval = std::chrono::milliseconds(5);
constexpr size_t kPartBytes = kMaxPayload / 2;
constexpr size_t kPartReadings = 1024;  // of 30 bytes each

bool CanBeRead(int fd) {
  pollfd file{fd, POLLIN, 0};
  return fd >= 0 && poll(&file, 1, 0) == 1;
}

std::string SourceJson(const Source& source) {
  recording::RecordingInfo info;
  info.sources.push_back(source.Info());
  info.events = source.Events();
  info.streams = source.Streams();
  info.kernel_traces = source.KernelTraces();
  return recording::ToJson(info);
}

// Returns the first chunks, of `limit` bytes at most. They come from this process.
Bytes WholeChunks(Bytes chunks, size_t limit) {
  size_t size = 0;
  while (const auto header = Load<recording::ChunkHeader>(chunks, size)) {
    const size_t chunk = sizeof *header + size_t{header->count} * header->entry_size;
    if (chunk > limit - size) break;
    size += chunk;
  }
  return chunks.first(size);
}

Failed Refusal(const absl::Status& status) { return {std::string(Message(status))}; }

}  // namespace

absl::Status Server::Serve(int end) {
  last_message_at_ = parts_.now();
  while (!said_bye_ && !IsOver(end)) {
    const uint64_t received = link_.received();
    const absl::Status pumped = link_.Pump(HasRoom() ? kMaxPumpBytes : 0);
    if (link_.received() > received) last_message_at_ = parts_.now();
    XENOSCOPE_RETURN_IF_ERROR(HandleAll());
    if (said_bye_ || !pumped.ok()) break;  // a recorder that leaves without bye is an end, too
    if (greeted_ && parts_.now() - last_message_at_ > kIdleTimeout) {
      return absl::DeadlineExceededError(
          fmt::format("the recorder said nothing for {} minutes", kIdleTimeout.count()));
    }
    SendParts();
    // Before it sleeps, it sends what is queued.
    if (sampling_ && HasRoom() && (parts_.now() >= source_->Due() || CanGoOn())) {
      Collect();
    } else if (ending_ && (CanGoOn() || EndIsOver())) {
      GoOnEnding();
    } else {
      Wait(end);
    }
  }
  Abandon();
  return absl::OkStatus();
}

bool Server::IsOver(int end) {
  if (!farewell_until_) {
    if (!CanBeRead(end)) return false;
    if (!sampling_) return true;
    farewell_until_ = parts_.now() + kLongestFarewell;
    link_.Queue(Failed{"a signal ended it: its guest shuts down, or its service was stopped"});
    BeginEnd();
  }
  return (!ending_ && link_.Queued() == 0) || parts_.now() >= *farewell_until_;
}

bool Server::HasRoom() const { return link_.Queued() <= kMaxQueuedBytes; }

size_t Server::Room() const {
  return std::min(kMaxQueuedPages - std::min(kMaxQueuedPages, link_.Queued()),
                  kMaxPagesBetweenAnswers - std::min(kMaxPagesBetweenAnswers, since_answer_));
}

bool Server::EndIsOver() const {
  return parts_.now() - ending_since_ > kLongestEnd || ending_bytes_ >= kMaxBytesAtEnd;
}

bool Server::CanGoOn() const { return source_->HasMore() && Room() >= kWorthwhileRoom; }

absl::Status Server::HandleAll() {
  while (!said_bye_ && HasRoom()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::optional<AnyMessage> message, link_.Next());
    if (!message) break;
    XENOSCOPE_RETURN_IF_ERROR(Handle(*message));
  }
  return absl::OkStatus();
}

void Server::Wait(int end) {
  if (farewell_until_) end = kNoFile;  // that can be read for good
  if (!HasRoom()) {
    // The recorder's messages stay in the channel and must not end this wait.
    PollUntil(kNoFile, 0, end, steady_clock::now() + kServerPollInterval);
    return;
  }
  auto until = steady_clock::now() + (greeted_ ? kIdleTimeout : kIdle);
  if (sampling_) until = std::min(until, source_->Due());
  if (ending_) until = std::min(until, ending_since_ + kLongestEnd);
  if (farewell_until_) until = std::min(until, *farewell_until_);
  link_.Wait(until, end);
}

absl::Status Server::Handle(const AnyMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    greeted_ = true;
    link_.Queue(parts_.hello);
    if (hello->major == kMajor) return absl::OkStatus();
    return InvalidError("dom0's {} speaks version {} of the protocol, this one {}", hello->program,
                        hello->major, kMajor);
  }
  if (!greeted_) return InvalidError("the first message was no hello");
  if (const auto* ping = std::get_if<Ping>(&message)) {
    // The pong promises that no older samples follow it.
    if (sampling_) Collect();
    link_.Queue(Pong{ping->number, parts_.read_tsc().value});
    since_answer_ = 0;
    return absl::OkStatus();
  }
  if (const auto* prepare = std::get_if<Prepare>(&message)) {
    const absl::Status ready = MakeReady(*prepare);
    if (!ready.ok()) link_.Queue(Refusal(ready));
    return absl::OkStatus();
  }
  if (std::holds_alternative<Enlist>(message)) {
    const absl::StatusOr<bool> again = JoinXenoprof();
    if (again.ok()) {
      link_.Queue(Enlisted{*again});
    } else {
      link_.Queue(Refusal(again.status()));
    }
    return absl::OkStatus();
  }
  if (std::holds_alternative<Start>(message)) {
    const absl::Status begun = Begin();
    if (!begun.ok()) link_.Queue(Refusal(begun));
    return absl::OkStatus();
  }
  if (std::holds_alternative<Stop>(message)) {
    BeginEnd();
    return absl::OkStatus();
  }
  if (const auto* count = std::get_if<Count>(&message)) {
    const absl::Status counted = SendCounts(*count);
    if (!counted.ok()) link_.Queue(Refusal(counted));
    return absl::OkStatus();
  }
  if (const auto* share = std::get_if<Share>(&message)) return TakeShare(*share);
  if (const auto* want = std::get_if<Want>(&message)) {
    OpenFile(want->kind);
    return absl::OkStatus();
  }
  if (std::holds_alternative<Bye>(message)) {
    said_bye_ = true;
    return absl::OkStatus();
  }
  return InvalidError("a message of kind {}, which a recorder does not send", message.index() + 1);
}

absl::Status Server::MakeReady(const Prepare& prepare) {
  if (source_) return PreconditionError("it is ready already");
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                             parts_.open_source(prepare, perf_maps_));
  // The recorder waits for the answer. Later, what takes long would be missing from the recording.
  XENOSCOPE_RETURN_IF_ERROR(source->PrepareStart());
  source_ = std::move(source);
  link_.Queue(Prepared{SourceJson(*source_)});
  return absl::OkStatus();
}

absl::StatusOr<bool> Server::JoinXenoprof() {
  if (!source_ || sampling_) return PreconditionError("it is not ready to take part");
  return source_->Enlist();
}

absl::Status Server::Begin() {
  if (!source_ || sampling_) return PreconditionError("it is not ready to start");
  XENOSCOPE_RETURN_IF_ERROR(source_->Start());
  sampling_ = true;
  return absl::OkStatus();
}

absl::Status Server::SendCounts(const Count& count) {
  if (!count.events.empty()) {
    counters_.reset();
    XENOSCOPE_ASSIGN_OR_RETURN(PerfCounters opened, parts_.open_counters(count.events));
    counters_.emplace(std::move(opened));
    XENOSCOPE_RETURN_IF_ERROR(counters_->Enable(true));
  }
  if (!counters_) return PreconditionError("it was not told what to count");
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<CounterReading> readings, counters_->Read());
  Counts part;
  for (const CountedEvent& event : counters_->events()) part.obstacles.push_back(event.obstacle);
  size_t at = 0;
  do {
    const size_t end = std::min(readings.size(), at + kPartReadings);
    part.readings.assign(readings.begin() + static_cast<std::ptrdiff_t>(at),
                         readings.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
    part.last = at == readings.size();
    link_.Queue(std::exchange(part, {}));
  } while (at < readings.size());
  return absl::OkStatus();
}

absl::Status Server::TakeShare(const Share& share) {
  if (share.bytes.size() > kMaxSharedBytes - shared_.size()) {
    return ExhaustedError("it shares more than {} MB at once", kMaxSharedBytes >> 20);
  }
  shared_.insert(shared_.end(), share.bytes.begin(), share.bytes.end());
  if (!share.last) return absl::OkStatus();
  const absl::Status kept = KeepShared(std::exchange(shared_, {}));
  if (kept.ok()) {
    link_.Queue(Shared{});
  } else {
    link_.Queue(Refusal(kept));
  }
  return absl::OkStatus();
}

absl::Status Server::KeepShared(Bytes bytes) {
  // To write takes long, and samples do not wait.
  if (source_) return PreconditionError("it samples, and keeps nothing meanwhile");
  if (!parts_.keep_shared) {
    return PermissionError("its owner keeps nothing that is shared (xenoscope agent --shared)");
  }
  return parts_.keep_shared(bytes);
}

absl::Status Server::TakeFromSource(absl::Status (Source::*how)(recording::SampleWriter&)) {
  writer_.SetLimit(Room());
  absl::Status taken = (source_.get()->*how)(writer_);
  QueueSamples();
  return taken;
}

void Server::Collect() {
  const absl::Status collected = TakeFromSource(&Source::Collect);
  if (collected.ok()) return;
  link_.Queue(Refusal(collected));
  BeginEnd();
}

void Server::QueueSamples() {
  std::vector<std::byte> chunks = writer_.Take();
  const Bytes kept = WholeChunks(chunks, kMaxBytesBetweenAnswers - since_answer_);
  if (kept.size() < chunks.size() && !std::exchange(said_dropped_, true)) {
    link_.Queue(Failed{fmt::format(
        "it has more than {} MB of samples between two of its answers, and drops the others",
        kMaxBytesBetweenAnswers >> 20)});
  }
  chunks.resize(kept.size());
  since_answer_ += chunks.size();
  ending_bytes_ += chunks.size();
  for (size_t at = 0; at < chunks.size(); at += kPartBytes) {
    const Bytes part = Bytes(chunks).subspan(at, std::min(kPartBytes, chunks.size() - at));
    link_.Queue(Samples{{part.begin(), part.end()}});
  }
}

void Server::BeginEnd() {
  if (source_ && std::exchange(sampling_, false)) {
    ending_bytes_ = 0;
    const absl::Status stopped = TakeFromSource(&Source::Stop);
    ending_since_ = parts_.now();
    if (!stopped.ok()) link_.Queue(Refusal(stopped));
    ending_ = stopped.ok() && source_->HasMore();
  }
  if (!ending_) SendAccounts();
}

void Server::GoOnEnding() {
  const absl::Status taken = EndIsOver() ? absl::OkStatus() : TakeFromSource(&Source::Collect);
  if (!taken.ok()) link_.Queue(Refusal(taken));
  ending_ = taken.ok() && source_->HasMore() && !EndIsOver();
  if (!ending_) SendAccounts();
}

void Server::SendAccounts() {
  if (const std::vector<std::string> notes = perf_maps_->Notes(); !notes.empty()) {
    link_.Queue(Failed{absl::StrJoin(notes, "; ")});
  }
  const std::string accounts = source_ ? SourceJson(*source_) : recording::ToJson({});
  size_t at = 0;
  do {
    Account part;
    part.info = accounts.substr(at, kPartBytes);
    at += part.info.size();
    part.last = at == accounts.size();
    link_.Queue(part);
  } while (at < accounts.size());
  if (!source_) return;
  // To close can take a second, in which a guest that shuts down may kill this process.
  link_.Pump(0).IgnoreError();
  if (const absl::Status closed = source_->Close(); !closed.ok()) link_.Queue(Refusal(closed));
  source_.reset();
}

void Server::Abandon() {
  if (!source_) return;
  if (sampling_) {
    writer_.SetLimit(0);
    source_->Stop(writer_).IgnoreError();
  }
  source_->Close().IgnoreError();
  source_.reset();
}

void Server::OpenFile(FileKind kind) {
  if (file_transfer_) {
    link_.Queue(Failed{"it is sending another file"});
    return;
  }
  std::unique_ptr<std::istream> content;
  switch (kind) {
    case FileKind::kKallsyms:
      content = std::make_unique<std::ifstream>(parts_.kallsyms);
      break;
    case FileKind::kModules:
      content = std::make_unique<std::ifstream>(parts_.modules);
      break;
    case FileKind::kVdso: {
      const std::vector<std::byte> vdso = ReadVdso();
      content = std::make_unique<std::istringstream>(std::string(AsText(vdso)));
      break;
    }
    case FileKind::kPerfMaps:
      content = std::make_unique<std::istringstream>(perf_maps_->Read());
      break;
    case FileKind::kBootTrace:
      if (!parts_.boot_trace.ok()) {
        link_.Queue(Refusal(parts_.boot_trace.status()));
        return;
      }
      content = std::make_unique<std::istringstream>(std::string(AsText(*parts_.boot_trace)));
      break;
  }
  if (!content || !*content) {
    link_.Queue(Failed{"cannot read the kernel's symbols"});
    return;
  }
  file_transfer_ = FileTransfer{kind, std::move(content)};
}

void Server::SendParts() {
  while (file_transfer_ && link_.Queued() < kReadAheadBytes) {
    FilePart part;
    part.kind = file_transfer_->kind;
    part.content.resize(kPartBytes);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text as bytes
    file_transfer_->content->read(reinterpret_cast<char*>(part.content.data()), kPartBytes);
    part.content.resize(static_cast<size_t>(file_transfer_->content->gcount()));
    part.last = !*file_transfer_->content;
    link_.Queue(part);
    if (part.last) file_transfer_.reset();
    // What the kernel generates slowly is sent as it comes. A recorder that is gone is noticed
    // later.
    link_.Pump(0).IgnoreError();
  }
}

}  // namespace xenoscope::sampler::agent
