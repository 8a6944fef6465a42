#include "sampler/agent/agent_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

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
// Limit of bytes of a file that are read ahead of the recorder.
constexpr size_t kReadAheadBytes = size_t{256} << 10;
constexpr auto kIdle = std::chrono::hours(1);
// The interval between checks whether a slow recorder reads again.
constexpr auto kServerPollInterval = std::chrono::milliseconds(50);
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

Failed Refusal(const absl::Status& status) { return {std::string(Message(status))}; }

}  // namespace

absl::Status Server::Serve(int end) {
  last_message_at_ = parts_.now();
  while (!said_bye_ && !CanBeRead(end)) {
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
    if (sampling_ && HasRoom() && parts_.now() >= source_->Due()) {
      Collect();
      continue;  // before it sleeps, it sends what is queued
    }
    Wait(end);
  }
  if (source_) End();
  return absl::OkStatus();
}

bool Server::HasRoom() const { return link_.Queued() <= kMaxQueuedBytes; }

absl::Status Server::HandleAll() {
  while (!said_bye_ && HasRoom()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::optional<AnyMessage> message, link_.Next());
    if (!message) break;
    XENOSCOPE_RETURN_IF_ERROR(Handle(*message));
  }
  return absl::OkStatus();
}

void Server::Wait(int end) {
  if (!HasRoom()) {
    // The recorder's messages stay in the channel and must not end this wait.
    PollUntil(kNoFile, 0, end, steady_clock::now() + kServerPollInterval);
    return;
  }
  const auto idle = steady_clock::now() + (greeted_ ? kIdleTimeout : kIdle);
  link_.Wait(sampling_ ? std::min(idle, source_->Due()) : idle, end);
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
    End();
    return absl::OkStatus();
  }
  if (const auto* count = std::get_if<Count>(&message)) {
    const absl::Status counted = SendCounts(*count);
    if (!counted.ok()) link_.Queue(Refusal(counted));
    return absl::OkStatus();
  }
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
  XENOSCOPE_ASSIGN_OR_RETURN(source_, parts_.open_source(prepare));
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

void Server::Collect() {
  if (const absl::Status collected = source_->Collect(writer_); !collected.ok()) {
    link_.Queue(Refusal(collected));
    End();
    return;
  }
  QueueSamples();
}

void Server::QueueSamples() {
  const std::vector<std::byte> chunks = writer_.Take();
  for (size_t at = 0; at < chunks.size(); at += kPartBytes) {
    const Bytes part = Bytes(chunks).subspan(at, std::min(kPartBytes, chunks.size() - at));
    link_.Queue(Samples{{part.begin(), part.end()}});
  }
}

void Server::End() {
  std::string accounts = recording::ToJson({});
  if (source_) {
    if (sampling_) {
      sampling_ = false;
      const absl::Status stopped = source_->Stop(writer_);
      QueueSamples();
      if (!stopped.ok()) link_.Queue(Refusal(stopped));
    }
    accounts = SourceJson(*source_);
    if (const absl::Status closed = source_->Close(); !closed.ok()) link_.Queue(Refusal(closed));
    source_.reset();
  }
  size_t at = 0;
  do {
    Account part;
    part.info = accounts.substr(at, kPartBytes);
    at += part.info.size();
    part.last = at == accounts.size();
    link_.Queue(part);
  } while (at < accounts.size());
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
      content = std::make_unique<std::istringstream>(ReadPerfMaps(parts_.proc, parts_.tmp));
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
