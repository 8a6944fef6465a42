// The protocol between a guest's agent and dom0's recorder: messages as bytes and back.
// docs/agent.md describes the same in words. Either side reads the other's bytes only here.
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
#include "sampler/perf/perf_counters.h"

namespace xenoscope::sampler::agent {

inline constexpr uint16_t kMajor = 1;  // major version, which must be the same on both sides
// Minor version; newer ones add kinds, and fields at the end of payloads.
inline constexpr uint16_t kMinor = 12;
inline constexpr uint16_t kFirstMinorWithCounts = 3;  // the first one with Count and Counts
// The first one whose Prepare says how callers in user mode are found.
inline constexpr uint16_t kFirstMinorWithStacks = 4;
// The first one whose Prepare asks for the threads of the guest.
inline constexpr uint16_t kFirstMinorWithThreads = 5;
// The first one with FileKind::kBootTrace.
inline constexpr uint16_t kFirstMinorWithBootTrace = 6;
// The first one whose Prepare has other events of the guest's kernel.
inline constexpr uint16_t kFirstMinorWithKernelEvents = 7;
// The first one whose Prepare asks for what the kernel says of its CPUs' time.
inline constexpr uint16_t kFirstMinorWithCpuTimes = 8;
// The first one with Share and Shared.
inline constexpr uint16_t kFirstMinorWithShare = 9;
// The first one whose Prepare has functions of the guest's kernel.
inline constexpr uint16_t kFirstMinorWithFunctions = 10;
// The first one whose Prepare says that the guest is to shut down.
inline constexpr uint16_t kFirstMinorWithShutdown = 11;
inline constexpr size_t kFrameHeader = 20;
inline constexpr size_t kMaxPayload = size_t{64} * 1024;
inline constexpr size_t kMaxText = 256;   // limit of a name, in bytes
inline constexpr size_t kMaxEvents = 16;  // limit of events in a Prepare or a Count
// Limit of the bytes of chunks between two answers about the agent's clock. A recorder gives an
// agent up that sends more.
inline constexpr size_t kMaxBytesBetweenAnswers = size_t{16} << 20;
// Limit of the bytes that a recorder shares with an agent at once.
inline constexpr size_t kMaxSharedBytes = size_t{4} << 20;

// The first message of either side: the recorder's, then the agent's.
struct Hello {
  uint16_t major = kMajor;
  uint16_t minor = kMinor;
  uint32_t vcpus = 0;       // number of vCPUs of the sender's domain
  uint64_t tsc_hz = 0;      // rate of the TSC as the sender reads it, in Hz; 0: not known
  bool tsc_native = false;  // whether that is the processor's TSC, at most with an offset
  std::string program;      // "xenoscope 0.1.0"
  std::string kernel;       // release of the kernel, as uname -r prints it
  bool operator==(const Hello&) const = default;
};

// A question for the agent's TSC. The agent answers after all that it sent before.
struct Ping {
  uint64_t number = 0;
  bool operator==(const Ping&) const = default;
};
struct Pong {
  uint64_t number = 0;  // number of the ping
  uint64_t tsc = 0;     // the agent's TSC, read after the ping came and before the pong went
  bool operator==(const Pong&) const = default;
};

// The request to get ready to sample, and the agent's answer when it is ready.
enum class GuestSource : uint8_t {
  kPerf = 0,      // the guest's kernel samples, by perf
  kXenoprof = 1,  // an active domain of dom0's xenoprof session; since 1.1, older agents use perf
};
struct Prepare {
  std::vector<std::string> events;  // events as after `record -e`; none: the agent chooses
  bool chains = false;              // whether samples have callers
  GuestSource source = GuestSource::kPerf;
  // Since 1.4, for perf: limit in bytes of the piece of the user stack that comes with samples in
  // place of callers in user mode, 0: frame pointers give them; and whether branch records do.
  uint32_t stack_bytes = 0;
  bool branch_records = false;
  uint64_t all_stack_bytes = 0;  // limit of what all stacks take, compressed
  // Since 1.5: whether the agent sends its kernel's events of threads, too.
  bool threads = false;
  // Since 1.7: the kernel's events that come with those of threads (sampler/ftrace/event_list.h).
  std::vector<std::string> kernel_events{};
  // Since 1.8: whether what its kernel says of its CPUs' time comes with its threads.
  bool cpu_times = false;
  // Since 1.10: the kernel's functions that are traced beside its threads
  // (sampler/ftrace/function_patterns.h).
  std::vector<std::string> functions{};
  // Since 1.11: whether the guest is to shut down, so that its kernel's events of threads are sent
  // as soon as they are there.
  bool shutdown = false;
  bool operator==(const Prepare&) const = default;
};
struct Prepared {
  // recording.json with the keys sources and events, and kernel_traces if threads will come. Since
  // 1.7 the source's problems say which of Prepare's kernel_events, and functions, will not come,
  // and why.
  std::string info;
  bool operator==(const Prepared&) const = default;
};

// The request to sample from now on.
struct Start {
  bool operator==(const Start&) const = default;
};

// Chunks as in samples/*.samples (recording/sample_format.h), since 1.4 also those of stacks, since
// 1.5 also those of the kernel's trace, since 1.8 beside these what its /proc/stat says, since 1.12
// what JIT compilers write, cut anywhere; all chunks before a pong are whole.
struct Samples {
  std::vector<std::byte> chunks;
  bool operator==(const Samples&) const = default;
};

// The request to stop, and the answer after the last samples.
struct Stop {
  bool operator==(const Stop&) const = default;
};
struct Account {
  // recording.json with the keys events, streams and kernel_traces, cut anywhere.
  std::string info;
  bool last = false;
  bool operator==(const Account&) const = default;
};

// The request for a file, and the answers: its content in order, the last part marked. kVdso and
// kPerfMaps are of minor version 2, kBootTrace of 6; they are SymbolFile's kinds of these names.
enum class FileKind : uint8_t {
  kKallsyms = 1,
  kModules = 2,
  kVdso = 3,
  kPerfMaps = 4,
  kBootTrace = 5
};
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

// The agent cannot do what it was asked: a sentence for the user. The session goes on.
struct Failed {
  std::string why;
  bool operator==(const Failed&) const = default;
};

// The end of the session.
struct Bye {
  bool operator==(const Bye&) const = default;
};

// The request to take part in xenoprof, as Xen has just listed the domain as active, and the answer
// when the domain takes part; since 1.1.
struct Enlist {
  bool operator==(const Enlist&) const = default;
};
struct Enlisted {
  bool again = false;  // whether the domain was not ready, and is to be listed and asked once more
  bool operator==(const Enlisted&) const = default;
};

// The request to count events on all CPUs from now on, as after `stat -e`; without events, to read
// the counters that count already. The answer has the counts up to then. Since 1.3.
struct Count {
  std::vector<std::string> events;
  bool operator==(const Count&) const = default;
};
struct Counts {
  bool last = false;  // whether no other part follows
  // By event: why the guest cannot count it, or empty. Whole in the first part, none in others.
  std::vector<std::string> obstacles;
  std::vector<CounterReading> readings;  // each of a CPU
  bool operator==(const Counts&) const = default;
};

// What the guest's owner may see of the last recording, cut anywhere (record --share), outside of
// sampling. The agent answers the last part when it has kept all of it, or with Failed. Since 1.9.
struct Share {
  bool last = false;  // whether no other part follows
  std::vector<std::byte> bytes;
  bool operator==(const Share&) const = default;
};
struct Shared {
  bool operator==(const Shared&) const = default;
};

// A message. The order of the types is that of the kinds' numbers, from 1.
using AnyMessage =
    std::variant<Hello, Ping, Pong, Prepare, Prepared, Start, Samples, Stop, Account, Want,
                 FilePart, Failed, Bye, Enlist, Enlisted, Count, Counts, Share, Shared>;

// Returns the frame of a message. Texts and lists beyond the limits above are cut; the caller keeps
// the payload below kMaxPayload.
std::vector<std::byte> Encode(const AnyMessage& message);

// Returns the frame of any payload below kMaxPayload, of any kind: what a peer may send.
std::vector<std::byte> EncodeFrame(uint16_t kind, Bytes payload);

// A reader of messages from bytes that come in parts.
//
//   reader.Add(bytes); while (... message = reader.Next()) ...
class FrameReader {
 public:
  void Add(Bytes bytes);

  // Returns the next whole message, or nothing yet. Messages of kinds that a newer minor version
  // has are passed over. Errors (InvalidArgument): what came is not a frame, is too long, damaged,
  // or has impossible values; nothing after it can be read.
  absl::StatusOr<std::optional<AnyMessage>> Next();

  [[nodiscard]] uint64_t unknown() const {
    return unknown_;
  }  // number of messages that were passed over
  [[nodiscard]] bool Pending() const { return begin_ < buffer_.size(); }

 private:
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;     // offset of the next frame in buffer_
  uint64_t offset_ = 0;  // offset of the next frame in all that was received
  uint64_t unknown_ = 0;
};

}  // namespace xenoscope::sampler::agent
