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

// Appends values to a payload.
class Pen {
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
  void Rest(Bytes bytes) { payload_.insert(payload_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> Take() { return std::move(payload_); }

 private:
  std::vector<std::byte> payload_;
};

// Takes values from a payload; `good` turns false for ever when one is not there.
class Eye {
 public:
  explicit Eye(Bytes payload) : payload_(payload) {}

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
  Bytes Rest() {
    const Bytes rest = good_ ? payload_.subspan(at_) : Bytes();
    at_ = payload_.size();
    return rest;
  }
  FileKind Kind() {
    const auto value = Number<uint8_t>();
    good_ = good_ && value >= static_cast<uint8_t>(FileKind::kKallsyms) &&
            value <= static_cast<uint8_t>(FileKind::kPerfMaps);
    return static_cast<FileKind>(value);
  }
  bool good() const { return good_; }
  bool AtEnd() const { return at_ >= payload_.size(); }

 private:
  Bytes payload_;
  uint64_t at_ = 0;
  bool good_ = true;
};

void Put(Pen& pen, const Hello& hello) {
  pen.Number(hello.major);
  pen.Number(hello.minor);
  pen.Number(hello.vcpus);
  pen.Number(hello.tsc_hz);
  pen.Flag(hello.tsc_native);
  pen.Text(hello.program);
  pen.Text(hello.kernel);
}
void Put(Pen& pen, const Ping& ping) { pen.Number(ping.number); }
void Put(Pen& pen, const Pong& pong) {
  pen.Number(pong.number);
  pen.Number(pong.tsc);
}
void Put(Pen& pen, const Prepare& prepare) {
  const size_t count = std::min(prepare.events.size(), kMaxEvents);
  pen.Flag(prepare.chains);
  pen.Number(static_cast<uint16_t>(count));
  for (size_t i = 0; i < count; ++i) pen.Text(prepare.events[i]);
  pen.Number(static_cast<uint8_t>(prepare.source));
}
void Put(Pen& pen, const Prepared& prepared) { pen.Rest(AsBytes(prepared.info)); }
void Put(Pen& /*pen*/, const Start& /*start*/) {}
void Put(Pen& pen, const Samples& samples) { pen.Rest(samples.chunks); }
void Put(Pen& /*pen*/, const Stop& /*stop*/) {}
void Put(Pen& pen, const Account& account) {
  pen.Flag(account.last);
  pen.Rest(AsBytes(account.info));
}
void Put(Pen& pen, const Want& want) { pen.Number(static_cast<uint8_t>(want.kind)); }
void Put(Pen& pen, const FilePart& part) {
  pen.Number(static_cast<uint8_t>(part.kind));
  pen.Flag(part.last);
  pen.Rest(part.content);
}
void Put(Pen& pen, const Failed& failed) { pen.Text(failed.why); }
void Put(Pen& /*pen*/, const Bye& /*bye*/) {}
void Put(Pen& /*pen*/, const Enlist& /*enlist*/) {}
void Put(Pen& pen, const Enlisted& enlisted) { pen.Flag(enlisted.again); }

std::vector<std::byte> Copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

void Get(Eye& eye, Hello& hello) {
  hello.major = eye.Number<uint16_t>();
  hello.minor = eye.Number<uint16_t>();
  hello.vcpus = eye.Number<uint32_t>();
  hello.tsc_hz = eye.Number<uint64_t>();
  hello.tsc_native = eye.Flag();
  hello.program = eye.Text();
  hello.kernel = eye.Text();
}
void Get(Eye& eye, Ping& ping) { ping.number = eye.Number<uint64_t>(); }
void Get(Eye& eye, Pong& pong) {
  pong.number = eye.Number<uint64_t>();
  pong.tsc = eye.Number<uint64_t>();
}
void Get(Eye& eye, Prepare& prepare) {
  prepare.chains = eye.Flag();
  const size_t count = std::min<size_t>(eye.Number<uint16_t>(), kMaxEvents);
  for (size_t i = 0; i < count && eye.good(); ++i) prepare.events.push_back(eye.Text());
  // Recorders of version 1.0 say nothing of it.
  if (eye.AtEnd()) return;
  prepare.source = eye.Flag() ? GuestSource::kXenoprof : GuestSource::kPerf;
}
void Get(Eye& eye, Prepared& prepared) { prepared.info = AsText(eye.Rest()); }
void Get(Eye& /*eye*/, Start& /*start*/) {}
void Get(Eye& eye, Samples& samples) { samples.chunks = Copy(eye.Rest()); }
void Get(Eye& /*eye*/, Stop& /*stop*/) {}
void Get(Eye& eye, Account& account) {
  account.last = eye.Flag();
  account.info = AsText(eye.Rest());
}
void Get(Eye& eye, Want& want) { want.kind = eye.Kind(); }
void Get(Eye& eye, FilePart& part) {
  part.kind = eye.Kind();
  part.last = eye.Flag();
  part.content = Copy(eye.Rest());
}
void Get(Eye& eye, Failed& failed) { failed.why = eye.Text(); }
void Get(Eye& /*eye*/, Bye& /*bye*/) {}
void Get(Eye& /*eye*/, Enlist& /*enlist*/) {}
void Get(Eye& eye, Enlisted& enlisted) { enlisted.again = eye.Flag(); }

// The message whose kind is the number of `Index` in AnyMessage, or one further on.
template <size_t Index = 0>
std::optional<AnyMessage> Decode(uint16_t kind, Bytes payload) {
  if constexpr (Index == std::variant_size_v<AnyMessage>) {
    return std::nullopt;
  } else {
    if (kind != Index + 1) return Decode<Index + 1>(kind, payload);
    Eye eye(payload);
    std::variant_alternative_t<Index, AnyMessage> message;
    Get(eye, message);
    if (!eye.good()) return std::nullopt;
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
  Pen payload;
  std::visit([&payload](const auto& each) { Put(payload, each); }, message);
  return EncodeFrame(static_cast<uint16_t>(message.index() + 1), payload.Take());
}

std::vector<std::byte> EncodeFrame(uint16_t kind, Bytes payload) {
  Header header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(payload.size());
  header.payload_crc = Crc32(payload);
  header.header_crc = Crc32(BytesOf(header).first(kHeaderCrcAt));
  Pen frame;
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
      return InvalidError("at byte {} of what it sent: no frame begins there", offset_);
    }
    if (header->length > kMaxPayload) {
      return InvalidError("at byte {} of what it sent: a frame of {} bytes; at most {} are allowed",
                          offset_, header->length, kMaxPayload);
    }
    const auto payload = Slice(rest, kFrameHeader, header->length);
    if (!payload) return std::nullopt;
    if (Crc32(*payload) != header->payload_crc) {
      return InvalidError("at byte {} of what it sent: a frame whose checksum is wrong", offset_);
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
      return InvalidError("at byte {} of what it sent: a message of kind {} that is not whole", at,
                          header->kind);
    }
    return message;
  }
}

}  // namespace xenoscope::sampler::agent
