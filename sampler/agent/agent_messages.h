// What a guest's agent and dom0's recorder say to each other, as bytes and back. docs/agent.md says
// the same in words. Either side reads the other's bytes here and nowhere else.
//
// A frame, little-endian: "XSAG", u16 kind, u16 0, u32 length of the payload, u32 CRC-32 of the
// payload, u32 CRC-32 of the 16 bytes before; then the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"

namespace xenoscope::sampler::agent {

inline constexpr uint16_t kMajor = 1;  // both sides must have the same
inline constexpr uint16_t kMinor = 2;  // newer ones add kinds, and fields at the end of payloads
inline constexpr size_t kFrameHeader = 20;
inline constexpr size_t kMaxPayload = size_t{64} * 1024;
inline constexpr size_t kMaxText = 256;   // bytes of a name
inline constexpr size_t kMaxEvents = 16;  // in a Prepare

// The first word of either side: the recorder's, then the agent's.
struct Hello {
  uint16_t major = kMajor;
  uint16_t minor = kMinor;
  uint32_t vcpus = 0;       // of the sender's domain
  uint64_t tsc_hz = 0;      // of the TSC as the sender reads it; 0: not known
  bool tsc_native = false;  // the processor's own, at most with an offset
  std::string program;      // "xenoscope 0.1.0"
  std::string kernel;       // as uname -r
  bool operator==(const Hello&) const = default;
};

// "What does your TSC say?" The agent answers after all that it had sent before.
struct Ping {
  uint64_t number = 0;
  bool operator==(const Ping&) const = default;
};
struct Pong {
  uint64_t number = 0;  // the ping's
  uint64_t tsc = 0;     // read between the ping's coming and this one's going
  bool operator==(const Pong&) const = default;
};

// "Make ready to sample so", and the agent's answer when it is.
enum class GuestSource : uint8_t {
  kPerf = 0,      // by its own kernel
  kXenoprof = 1,  // as an active domain of dom0's session; since 1.1, agents before it take perf
};
struct Prepare {
  std::vector<std::string> events;  // as after `record -e`; none: the agent's choice
  bool chains = false;              // with callers
  GuestSource source = GuestSource::kPerf;
  bool operator==(const Prepare&) const = default;
};
struct Prepared {
  std::string info;  // recording.json with the keys sources and events
  bool operator==(const Prepared&) const = default;
};

// "Sample from now on."
struct Start {
  bool operator==(const Start&) const = default;
};

// Chunks as in samples/*.samples (recording/sample_format.h), cut anywhere; whole at each pong.
struct Samples {
  std::vector<std::byte> chunks;
  bool operator==(const Samples&) const = default;
};

// "Stop", and the answer after the last samples.
struct Stop {
  bool operator==(const Stop&) const = default;
};
struct Account {
  std::string info;  // recording.json with the keys events and streams; cut anywhere
  bool last = false;
  bool operator==(const Account&) const = default;
};

// "Send me your kallsyms", and the answers: its content in order, the last one marked.
// The latter two since minor version 2: SymbolFile's kVdso and kPerfMaps.
enum class FileKind : uint8_t { kKallsyms = 1, kModules = 2, kVdso = 3, kPerfMaps = 4 };
struct Want {
  FileKind kind = FileKind::kKallsyms;
  bool operator==(const Want&) const = default;
};
struct FilePart {
  FileKind kind = FileKind::kKallsyms;
  bool last = false;
  std::vector<std::byte> content;
  bool operator==(const FilePart&) const = default;
};

// The agent cannot do what it was asked to: a sentence for the user. The session goes on.
struct Failed {
  std::string why;
  bool operator==(const Failed&) const = default;
};

// The session is over.
struct Bye {
  bool operator==(const Bye&) const = default;
};

// "Xen has listed you as an active domain: take part", and the answer when it does; since 1.1.
struct Enlist {
  bool operator==(const Enlist&) const = default;
};
struct Enlisted {
  bool again = false;  // it was not ready, and is to be listed and told once more
  bool operator==(const Enlisted&) const = default;
};

// The order is that of the kinds' numbers, from 1.
using AnyMessage = std::variant<Hello, Ping, Pong, Prepare, Prepared, Start, Samples, Stop, Account,
                                Want, FilePart, Failed, Bye, Enlist, Enlisted>;

// The frame of a message. Texts and lists beyond the limits above are cut; a payload is the
// sender's to keep below kMaxPayload.
std::vector<std::byte> Encode(const AnyMessage& message);

// The frame of any payload below kMaxPayload, of any kind: what a peer may send.
std::vector<std::byte> EncodeFrame(uint16_t kind, Bytes payload);

// Puts frames together from bytes as they come.
//
//   reader.Add(bytes); while (... message = reader.Next()) ...
class FrameReader {
 public:
  void Add(Bytes bytes);

  // The next whole message, or nothing yet. Messages of kinds that a newer minor version has are
  // passed over. Errors (InvalidArgument): what came is no frame, too long, damaged, or says what
  // cannot be; nothing can be read behind it.
  absl::StatusOr<std::optional<AnyMessage>> Next();

  uint64_t unknown() const { return unknown_; }  // messages that were passed over
  bool Pending() const { return begin_ < buffer_.size(); }

 private:
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;     // of the next frame in it
  uint64_t offset_ = 0;  // of the next frame in all that came
  uint64_t unknown_ = 0;
};

}  // namespace xenoscope::sampler::agent
