#include "sampler/agent/agent_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "recording/sample_format.h"

namespace xenoscope::sampler {
namespace {

using recording::EventInfo;
using recording::KernelTraceInfo;
using recording::StreamInfo;

constexpr uint32_t kMaxTextBytes = 1024;
constexpr uint32_t kMaxTexts = 64;

// Modes as a byte; bit 7: they are not known.
uint8_t ModeBits(const std::optional<ModeSet>& modes) {
  if (!modes) return 1 << 7;
  return static_cast<uint8_t>((modes->user ? 1 : 0) | (modes->kernel ? 2 : 0) |
                              (modes->xen ? 4 : 0));
}

std::optional<ModeSet> ModesOf(uint8_t bits) {
  if ((bits >> 7) != 0) return std::nullopt;
  return ModeSet{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
}

class Packer {
 public:
  Packer() { Add(uint32_t{0}); }

  template <typename T>
  void Add(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    const Bytes bytes = std::as_bytes(std::span(&value, 1));
    frame_.insert(frame_.end(), bytes.begin(), bytes.end());
  }
  void Add(const std::string& text) { Add(AsBytes(text)); }
  void Add(Bytes bytes) {
    Add(static_cast<uint32_t>(bytes.size()));
    frame_.insert(frame_.end(), bytes.begin(), bytes.end());
  }
  template <typename T>
  void Add(const std::vector<T>& list) {
    Add(static_cast<uint32_t>(list.size()));
    for (const T& item : list) Add(item);
  }
  void Add(const EventInfo& event) {
    Add(event.name);
    Add(event.code);
    Add(event.unit_mask);
    Add(event.period);
    Add(event.clocked_by);
    Add(static_cast<uint8_t>(event.waiting));
    Add(ModeBits(event.modes));
  }
  void Add(const CounterReading& reading) {
    Add(static_cast<uint32_t>(reading.event));
    Add(reading.cpu.value_or(0));
    Add(reading.count);
    Add(reading.enabled_ns);
    Add(reading.running_ns);
  }
  void Add(const StreamInfo& stream) {
    Add(stream.vcpu.vcpu.value);
    for (const uint64_t count :
         {stream.logged.xen, stream.logged.kernel, stream.logged.user, stream.logged.lost,
          stream.drained, stream.kept, stream.other_counters, stream.other_modes, stream.escapes,
          stream.callers, stream.invalid}) {
      Add(count);
    }
    Add(static_cast<uint8_t>(stream.complete));
  }

  void Add(const KernelTraceInfo& trace) {
    Add(trace.vcpu.vcpu.value);
    Add(trace.read);
    Add(trace.lost);
  }

  std::vector<std::byte> Frame() && {
    const auto size = static_cast<uint32_t>(frame_.size() - sizeof(uint32_t));
    std::ranges::copy(std::as_bytes(std::span(&size, 1)), frame_.begin());
    return std::move(frame_);
  }

 private:
  std::vector<std::byte> frame_;
};

// The numbers of StackInfo but the requested size, in the order in which they are sent.
template <typename Info>
auto NumbersOf(Info& info) {
  return std::array{&info.pieces, &info.raw_bytes, &info.stored_bytes, &info.left_out};
}

// A reader of one item after the other; from the first that is missing on, all are zero or empty.
class Unpacker {
 public:
  explicit Unpacker(Bytes bytes) : left_(bytes) {}

  template <typename T>
  T Number() {
    const std::optional<T> value = Load<T>(left_, 0);
    Skip(value ? sizeof(T) : left_.size() + 1);
    return value.value_or(T{});
  }
  bool Flag() { return Number<uint8_t>() != 0; }
  Bytes Rest() {
    const auto size = Number<uint32_t>();
    const std::optional<Bytes> bytes = Slice(left_, 0, size);
    Skip(bytes ? size : left_.size() + 1);
    return bytes.value_or(Bytes());
  }
  std::string Text() {
    const std::string_view whole = AsText(Rest());
    std::string text(whole.substr(0, kMaxTextBytes));
    constexpr char kDelete = 0x7f;
    std::ranges::replace_if(
        text, [](char c) { return (c >= 0 && c < ' ') || c == kDelete; }, '?');
    return text;
  }
  // Returns a list's length, at most `most`.
  uint32_t Count(size_t most) {
    const auto count = Number<uint32_t>();
    if (count > most) good_ = false;
    return good_ ? count : 0;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count(kMaxTexts));
    for (std::string& text : texts) text = Text();
    return texts;
  }
  std::vector<EventInfo> Events(size_t most) {
    std::vector<EventInfo> events(Count(most));
    for (EventInfo& event : events) {
      event.name = Text();
      event.code = Number<uint32_t>();
      event.unit_mask = Number<uint32_t>();
      event.period = Number<uint64_t>();
      event.clocked_by = Text();
      event.waiting = Flag();
      event.modes = ModesOf(Number<uint8_t>());
    }
    return events;
  }
  std::vector<CounterReading> Readings(size_t events, uint32_t vcpus) {
    std::vector<CounterReading> readings(Count(events * vcpus));
    for (CounterReading& reading : readings) {
      reading.event = Number<uint32_t>();
      reading.cpu = Number<uint32_t>();
      if (reading.event >= events || *reading.cpu >= vcpus) good_ = false;
      reading.count = Number<uint64_t>();
      reading.enabled_ns = Number<uint64_t>();
      reading.running_ns = Number<uint64_t>();
    }
    return readings;
  }
  std::vector<StreamInfo> Streams(DomainId domain, uint32_t vcpus) {
    std::vector<StreamInfo> streams(Count(vcpus));
    for (StreamInfo& stream : streams) {
      const auto vcpu = Number<uint32_t>();
      if (vcpu >= vcpus) good_ = false;
      stream.source = "agent";
      stream.vcpu = {domain, VcpuId{vcpu}};
      for (uint64_t* count :
           {&stream.logged.xen, &stream.logged.kernel, &stream.logged.user, &stream.logged.lost,
            &stream.drained, &stream.kept, &stream.other_counters, &stream.other_modes,
            &stream.escapes, &stream.callers, &stream.invalid}) {
        *count = Number<uint64_t>();
      }
      stream.complete = Flag();
    }
    return streams;
  }
  std::vector<KernelTraceInfo> KernelTraces(DomainId domain, uint32_t vcpus) {
    std::vector<KernelTraceInfo> traces(Count(vcpus));
    for (KernelTraceInfo& trace : traces) {
      const auto vcpu = Number<uint32_t>();
      if (vcpu >= vcpus) good_ = false;
      trace.source = fmt::format("agent-{}", domain.value);
      trace.vcpu = {domain, VcpuId{vcpu}};
      trace.read = Number<uint64_t>();
      trace.lost = Number<uint64_t>();
    }
    return traces;
  }
  // Returns whether all items were there, and no bytes are left.
  bool Good() const { return good_ && left_.empty(); }

 private:
  void Skip(size_t bytes) {
    if (bytes > left_.size()) {
      good_ = false;
      bytes = left_.size();
    }
    left_ = left_.subspan(bytes);
  }

  Bytes left_;
  bool good_ = true;
};

absl::StatusCode CodeOf(uint8_t number) {
  return number <= static_cast<uint8_t>(absl::StatusCode::kUnauthenticated)
             ? static_cast<absl::StatusCode>(number)
             : absl::StatusCode::kUnknown;
}

// Whether agents' files have chunks of this kind.
bool IsOfAgent(recording::ChunkKind kind) {
  using recording::ChunkKind;
  return kind == ChunkKind::kTimed || kind == ChunkKind::kProcesses || kind == ChunkKind::kStacks ||
         kind == ChunkKind::kTracePages || kind == ChunkKind::kTraceFormats ||
         kind == ChunkKind::kClockAnswers || kind == ChunkKind::kCpuTimes;
}

}  // namespace

std::vector<std::byte> Encode(const AgentCallMessage& message) {
  Packer packer;
  packer.Add(static_cast<uint8_t>(message.call));
  packer.Add(message.first);
  packer.Add(static_cast<uint8_t>(message.file));
  packer.Add(message.events);
  packer.Add(static_cast<uint8_t>(message.last));
  packer.Add(Bytes(message.bytes));
  return std::move(packer).Frame();
}

std::vector<std::byte> Encode(const AgentReply& reply) {
  Packer packer;
  packer.Add(static_cast<uint8_t>(reply.status.code()));
  packer.Add(std::string(Message(reply.status)));
  packer.Add(static_cast<uint8_t>(reply.flag));
  packer.Add(reply.program);
  packer.Add(reply.counts.obstacles);
  packer.Add(reply.counts.readings);
  const AgentState& state = reply.state;
  packer.Add(static_cast<uint8_t>(state.is_member));
  packer.Add(state.due_ns);
  packer.Add(state.events);
  packer.Add(state.notes);
  packer.Add(state.final_notes);
  packer.Add(state.streams);
  packer.Add(state.kernel_traces);
  packer.Add(static_cast<uint8_t>(state.stacks.has_value()));
  if (state.stacks) {
    packer.Add(state.stacks->piece_bytes);
    for (const uint64_t* const number : NumbersOf(*state.stacks)) packer.Add(*number);
  }
  packer.Add(Bytes(reply.bytes));
  return std::move(packer).Frame();
}

absl::StatusOr<AgentCallMessage> DecodeCall(Bytes payload) {
  Unpacker unpacker(payload);
  AgentCallMessage message;
  message.call = static_cast<AgentCall>(unpacker.Number<uint8_t>());
  message.first = unpacker.Number<uint64_t>();
  message.file = static_cast<recording::SymbolFile::Kind>(unpacker.Number<uint8_t>());
  message.events = unpacker.Texts();
  message.last = unpacker.Flag();
  const Bytes bytes = unpacker.Rest();
  if (!unpacker.Good()) return InvalidError("it is no call");
  message.bytes.assign(bytes.begin(), bytes.end());
  return message;
}

absl::StatusOr<AgentReply> DecodeReply(Bytes payload, DomainId domain, uint32_t vcpus) {
  Unpacker unpacker(payload);
  AgentReply reply;
  const absl::StatusCode code = CodeOf(unpacker.Number<uint8_t>());
  const std::string text = unpacker.Text();
  reply.status = absl::Status(code, text);
  reply.flag = unpacker.Flag();
  reply.program = unpacker.Text();
  reply.counts.obstacles = unpacker.Texts();
  reply.counts.readings = unpacker.Readings(reply.counts.obstacles.size(), vcpus);
  reply.counts.last = true;
  AgentState& state = reply.state;
  state.is_member = unpacker.Flag();
  state.due_ns = unpacker.Number<int64_t>();
  state.events = unpacker.Events(agent::kMaxEvents);
  state.notes = unpacker.Texts();
  state.final_notes = unpacker.Texts();
  state.streams = unpacker.Streams(domain, vcpus);
  state.kernel_traces = unpacker.KernelTraces(domain, vcpus);
  if (unpacker.Flag()) {
    recording::StackInfo& stacks = state.stacks.emplace();
    stacks.piece_bytes = unpacker.Number<uint32_t>();
    for (uint64_t* const number : NumbersOf(stacks)) *number = unpacker.Number<uint64_t>();
  }
  const Bytes bytes = unpacker.Rest();
  if (!unpacker.Good()) return InvalidError("it is no reply");
  reply.bytes.assign(bytes.begin(), bytes.end());
  return reply;
}

absl::Status CheckChunks(Bytes chunks, DomainId domain) {
  using recording::ChunkHeader;
  while (!chunks.empty()) {
    const auto header = Load<ChunkHeader>(chunks, 0);
    if (!header || header->magic != recording::kChunkMagic) {
      return InvalidError("no chunk of samples begins there");
    }
    if (!IsOfAgent(header->kind)) {
      return InvalidError("a chunk is of another kind than an agent's");
    }
    if (header->domain != domain.value) return InvalidError("a chunk is of another domain");
    const uint64_t size = sizeof *header + uint64_t{header->count} * header->entry_size;
    const auto chunk = Slice(chunks, 0, size);
    if (!chunk) return InvalidError("a chunk is cut off");
    chunks = chunks.subspan(chunk->size());
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
