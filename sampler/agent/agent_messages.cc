#include "sampler/agent/agent_messages.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "base/crc.h"
#include "base/error.h"

namespace xenoscope::sampler::agent {
namespace {

constexpr uint32_t kMagic = 0x47415358;  // "XSAG"
constexpr size_t kHeaderCrcAt = 16;

// A writer of values to a payload.
class PayloadWriter {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_integral_v<T>);
    Rest(std::as_bytes(std::span(&value, 1)));
  }
  void Flag(bool value) { Number<uint8_t>(value ? 1 : 0); }
  void Text(const std::string& text) {
    const std::string_view cut = std::string_view(text).substr(0, kMaxText);
    Number(static_cast<uint16_t>(cut.size()));
    Rest(AsBytes(cut));
  }
  void Texts(const std::vector<std::string>& texts) {
    const size_t count = std::min(texts.size(), kMaxEvents);
    Number(static_cast<uint16_t>(count));
    for (size_t i = 0; i < count; ++i) Text(texts[i]);
  }
  void Rest(Bytes bytes) { payload_.insert(payload_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> Take() { return std::move(payload_); }

 private:
  std::vector<std::byte> payload_;
};

// A reader of values from a payload; `good` becomes false when one is missing, and stays so.
class PayloadReader {
 public:
  explicit PayloadReader(Bytes payload) : payload_(payload) {}

  template <typename T>
  T Number() {
    const std::optional<T> value = Load<T>(payload_, at_);
    good_ = good_ && value.has_value();
    at_ += sizeof(T);
    return value.value_or(T{});
  }
  bool Flag() {
    const auto value = Number<uint8_t>();
    good_ = good_ && value <= 1;
    return value == 1;
  }
  std::string Text() {
    const auto length = Number<uint16_t>();
    const std::optional<Bytes> text = Slice(payload_, at_, length);
    good_ = good_ && text.has_value() && length <= kMaxText;
    at_ += length;
    return good_ ? std::string(AsText(*text)) : std::string();
  }
  // Returns a list of as many texts as there are events at most.
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    const size_t count = std::min<size_t>(Number<uint16_t>(), kMaxEvents);
    for (size_t i = 0; i < count && good_; ++i) texts.push_back(Text());
    return texts;
  }
  Bytes Rest() {
    const Bytes rest = good_ ? payload_.subspan(at_) : Bytes();
    at_ = payload_.size();
    return rest;
  }
  FileKind Kind() {
    const auto value = Number<uint8_t>();
    good_ = good_ && value >= static_cast<uint8_t>(FileKind::kKallsyms) &&
            value <= static_cast<uint8_t>(FileKind::kBootTrace);
    return static_cast<FileKind>(value);
  }
  bool good() const { return good_; }
  bool AtEnd() const { return at_ >= payload_.size(); }

 private:
  Bytes payload_;
  uint64_t at_ = 0;
  bool good_ = true;
};

void Put(PayloadWriter& writer, const Hello& hello) {
  writer.Number(hello.major);
  writer.Number(hello.minor);
  writer.Number(hello.vcpus);
  writer.Number(hello.tsc_hz);
  writer.Flag(hello.tsc_native);
  writer.Text(hello.program);
  writer.Text(hello.kernel);
}
void Put(PayloadWriter& writer, const Ping& ping) { writer.Number(ping.number); }
void Put(PayloadWriter& writer, const Pong& pong) {
  writer.Number(pong.number);
  writer.Number(pong.tsc);
}
void Put(PayloadWriter& writer, const Prepare& prepare) {
  writer.Flag(prepare.chains);
  writer.Texts(prepare.events);
  writer.Number(static_cast<uint8_t>(prepare.source));
  writer.Number(prepare.stack_bytes);
  writer.Flag(prepare.branch_records);
  writer.Number(prepare.all_stack_bytes);
  writer.Flag(prepare.threads);
  writer.Texts(prepare.kernel_events);
  writer.Flag(prepare.cpu_times);
  writer.Texts(prepare.functions);
  writer.Flag(prepare.shutdown);
}
void Put(PayloadWriter& writer, const Prepared& prepared) { writer.Rest(AsBytes(prepared.info)); }
void Put(PayloadWriter& /*pen*/, const Start& /*start*/) {}
void Put(PayloadWriter& writer, const Samples& samples) { writer.Rest(samples.chunks); }
void Put(PayloadWriter& /*pen*/, const Stop& /*stop*/) {}
void Put(PayloadWriter& writer, const Account& account) {
  writer.Flag(account.last);
  writer.Rest(AsBytes(account.info));
}
void Put(PayloadWriter& writer, const Want& want) {
  writer.Number(static_cast<uint8_t>(want.kind));
}
void Put(PayloadWriter& writer, const FilePart& part) {
  writer.Number(static_cast<uint8_t>(part.kind));
  writer.Flag(part.last);
  writer.Rest(part.content);
}
void Put(PayloadWriter& writer, const Failed& failed) { writer.Text(failed.why); }
void Put(PayloadWriter& /*pen*/, const Bye& /*bye*/) {}
void Put(PayloadWriter& /*pen*/, const Enlist& /*enlist*/) {}
void Put(PayloadWriter& writer, const Enlisted& enlisted) { writer.Flag(enlisted.again); }
void Put(PayloadWriter& writer, const Count& count) { writer.Texts(count.events); }
void Put(PayloadWriter& writer, const Counts& counts) {
  writer.Flag(counts.last);
  writer.Texts(counts.obstacles);
  for (const CounterReading& reading : counts.readings) {
    writer.Number(static_cast<uint16_t>(reading.event));
    writer.Number(reading.cpu.value_or(0));
    writer.Number(reading.count);
    writer.Number(reading.enabled_ns);
    writer.Number(reading.running_ns);
  }
}

void Put(PayloadWriter& writer, const Share& share) {
  writer.Flag(share.last);
  writer.Rest(share.bytes);
}
void Put(PayloadWriter& /*pen*/, const Shared& /*shared*/) {}

std::vector<std::byte> Copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

void Get(PayloadReader& reader, Hello& hello) {
  hello.major = reader.Number<uint16_t>();
  hello.minor = reader.Number<uint16_t>();
  hello.vcpus = reader.Number<uint32_t>();
  hello.tsc_hz = reader.Number<uint64_t>();
  hello.tsc_native = reader.Flag();
  hello.program = reader.Text();
  hello.kernel = reader.Text();
}
void Get(PayloadReader& reader, Ping& ping) { ping.number = reader.Number<uint64_t>(); }
void Get(PayloadReader& reader, Pong& pong) {
  pong.number = reader.Number<uint64_t>();
  pong.tsc = reader.Number<uint64_t>();
}
void Get(PayloadReader& reader, Prepare& prepare) {
  prepare.chains = reader.Flag();
  prepare.events = reader.Texts();
  // Recorders of version 1.0 do not send it.
  if (reader.AtEnd()) return;
  prepare.source = reader.Flag() ? GuestSource::kXenoprof : GuestSource::kPerf;
  // Those before 1.4 do not send these.
  if (reader.AtEnd()) return;
  prepare.stack_bytes = reader.Number<uint32_t>();
  prepare.branch_records = reader.Flag();
  prepare.all_stack_bytes = reader.Number<uint64_t>();
  // Those before 1.5 do not send this.
  if (reader.AtEnd()) return;
  prepare.threads = reader.Flag();
  // Those before 1.7 do not send these.
  if (reader.AtEnd()) return;
  prepare.kernel_events = reader.Texts();
  // Those before 1.8 do not send this.
  if (reader.AtEnd()) return;
  prepare.cpu_times = reader.Flag();
  // Those before 1.10 do not send these.
  if (reader.AtEnd()) return;
  prepare.functions = reader.Texts();
  // Those before 1.11 do not send this.
  if (!reader.AtEnd()) prepare.shutdown = reader.Flag();
}
void Get(PayloadReader& reader, Prepared& prepared) { prepared.info = AsText(reader.Rest()); }
void Get(PayloadReader& /*eye*/, Start& /*start*/) {}
void Get(PayloadReader& reader, Samples& samples) { samples.chunks = Copy(reader.Rest()); }
void Get(PayloadReader& /*eye*/, Stop& /*stop*/) {}
void Get(PayloadReader& reader, Account& account) {
  account.last = reader.Flag();
  account.info = AsText(reader.Rest());
}
void Get(PayloadReader& reader, Want& want) { want.kind = reader.Kind(); }
void Get(PayloadReader& reader, FilePart& part) {
  part.kind = reader.Kind();
  part.last = reader.Flag();
  part.content = Copy(reader.Rest());
}
void Get(PayloadReader& reader, Failed& failed) { failed.why = reader.Text(); }
void Get(PayloadReader& /*eye*/, Bye& /*bye*/) {}
void Get(PayloadReader& /*eye*/, Enlist& /*enlist*/) {}
void Get(PayloadReader& reader, Enlisted& enlisted) { enlisted.again = reader.Flag(); }
void Get(PayloadReader& reader, Count& count) { count.events = reader.Texts(); }
void Get(PayloadReader& reader, Counts& counts) {
  counts.last = reader.Flag();
  counts.obstacles = reader.Texts();
  while (reader.good() && !reader.AtEnd()) {
    CounterReading& reading = counts.readings.emplace_back();
    reading.event = reader.Number<uint16_t>();
    reading.cpu = reader.Number<uint32_t>();
    reading.count = reader.Number<uint64_t>();
    reading.enabled_ns = reader.Number<uint64_t>();
    reading.running_ns = reader.Number<uint64_t>();
  }
}

void Get(PayloadReader& reader, Share& share) {
  share.last = reader.Flag();
  share.bytes = Copy(reader.Rest());
}
void Get(PayloadReader& /*eye*/, Shared& /*shared*/) {}

// Returns the message of a kind: the alternative of AnyMessage at `Index` or behind it.
template <size_t Index = 0>
std::optional<AnyMessage> Decode(uint16_t kind, Bytes payload) {
  if constexpr (Index == std::variant_size_v<AnyMessage>) {
    return std::nullopt;
  } else {
    if (kind != Index + 1) return Decode<Index + 1>(kind, payload);
    PayloadReader reader(payload);
    std::variant_alternative_t<Index, AnyMessage> message;
    Get(reader, message);
    if (!reader.good()) return std::nullopt;
    return message;
  }
}

struct Header {
  uint32_t magic = kMagic;
  uint16_t kind = 0;
  uint16_t reserved = 0;
  uint32_t length = 0;
  uint32_t payload_crc = 0;
  uint32_t header_crc = 0;
};
static_assert(sizeof(Header) == kFrameHeader && offsetof(Header, header_crc) == kHeaderCrcAt);

Bytes BytesOf(const Header& header) { return std::as_bytes(std::span(&header, 1)); }

}  // namespace

std::vector<std::byte> Encode(const AnyMessage& message) {
  PayloadWriter payload;
  std::visit([&payload](const auto& each) { Put(payload, each); }, message);
  return EncodeFrame(static_cast<uint16_t>(message.index() + 1), payload.Take());
}

std::vector<std::byte> EncodeFrame(uint16_t kind, Bytes payload) {
  Header header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(payload.size());
  header.payload_crc = Crc32(payload);
  header.header_crc = Crc32(BytesOf(header).first(kHeaderCrcAt));
  PayloadWriter frame;
  frame.Rest(BytesOf(header));
  frame.Rest(payload);
  return frame.Take();
}

void FrameReader::Add(Bytes bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

absl::StatusOr<std::optional<AnyMessage>> FrameReader::Next() {
  while (true) {
    const Bytes rest = Bytes(buffer_).subspan(begin_);
    const auto header = Load<Header>(rest, 0);
    if (!header) return std::nullopt;
    if (header->magic != kMagic || Crc32(rest.first(kHeaderCrcAt)) != header->header_crc) {
      return InvalidError("at byte {} of its data: no frame begins there", offset_);
    }
    if (header->length > kMaxPayload) {
      return InvalidError("at byte {} of its data: a frame of {} bytes; at most {} are allowed",
                          offset_, header->length, kMaxPayload);
    }
    const auto payload = Slice(rest, kFrameHeader, header->length);
    if (!payload) return std::nullopt;
    if (Crc32(*payload) != header->payload_crc) {
      return InvalidError("at byte {} of its data: the checksum of a frame is wrong", offset_);
    }
    const uint64_t at = offset_;
    begin_ += kFrameHeader + header->length;
    offset_ += kFrameHeader + header->length;
    if (header->kind == 0 || header->kind > std::variant_size_v<AnyMessage>) {
      ++unknown_;
      continue;
    }
    std::optional<AnyMessage> message = Decode(header->kind, *payload);
    if (!message) {
      return InvalidError("at byte {} of its data: a message of kind {} is incomplete", at,
                          header->kind);
    }
    return message;
  }
}

}  // namespace xenoscope::sampler::agent
