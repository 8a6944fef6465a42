// The protocol between `record` and the process that drives an agent for it
// (sampler/agent/agent_worker.h): calls, and a reply to each. Replies come from a process that a
// guest may have taken over, so their format is as simple as possible, and they are checked here.
//
// A frame, little-endian: u32 length in bytes of the payload, then the payload. A text is a u32
// length and that many bytes; a list is a u32 count and its items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "recording/info.h"
#include "sampler/agent/agent_messages.h"

namespace xenoscope::sampler {

enum class AgentCall : uint8_t {
  kOpen = 1,
  kNumberEvents,
  kEnlist,
  kStart,
  kCollect,
  kOnDomainDestroyed,
  kStop,
  kFetch,
  kClose,
  kGreet,      // asks for the agent's name only
  kCount,      // counts events, or reads what is counted; the first one greets the agent
  kShare,      // sends a part of what is shared, after the last one all; the first one greets
  kInterrupt,  // has no reply; the call in progress is to stop waiting
};

struct AgentCallMessage {
  AgentCall call = AgentCall::kInterrupt;
  uint64_t first = 0;  // number of the agent's first event in the recording, for kNumberEvents
  // File to fetch, for kFetch.
  recording::SymbolFile::Kind file = recording::SymbolFile::Kind::kKallsyms;
  std::vector<std::string> events{};  // events to count, for kCount; none: only to read
  bool last = false;                  // whether no other part follows, for kShare
  std::vector<std::byte> bytes{};     // a part of what is shared, for kShare
};

// The state of a source (sampler/source.h) after a call: all that its const functions return.
struct AgentState {
  bool is_member = false;
  int64_t due_ns = 0;  // time of the steady clock, in ns
  std::vector<recording::EventInfo> events;
  std::vector<std::string> notes;
  std::vector<std::string> final_notes;
  std::vector<recording::StreamInfo> streams;  // accounts of streams, without the source's name
  std::optional<recording::StackInfo> stacks;  // set where samples have pieces of stacks
  std::vector<recording::KernelTraceInfo> kernel_traces;  // accounts of its kernel's trace
};

struct AgentReply {
  absl::Status status;   // result of the call
  bool flag = false;     // kEnlist: the result; kFetch: whether more of the file follows
  std::string program;   // name and version of the agent, for kGreet
  agent::Counts counts;  // for kCount: all parts in one
  AgentState state;
  std::vector<std::byte> bytes;  // kCollect, kStop: chunks of samples; kFetch: a part of the file
};

// Return whole frames.
std::vector<std::byte> Encode(const AgentCallMessage& message);
std::vector<std::byte> Encode(const AgentReply& reply);

// Decodes the payload of a frame.
absl::StatusOr<AgentCallMessage> DecodeCall(Bytes payload);
// Decodes a reply about `domain`, which has `vcpus` vCPUs. Errors (InvalidArgument): lists are too
// long, a vCPU is not the domain's, something is missing or left over. Texts are cut, and control
// characters are replaced.
absl::StatusOr<AgentReply> DecodeReply(Bytes payload, DomainId domain, uint32_t vcpus);

// Checks that `chunks` are whole chunks of samples, their stacks and processes, of the kernel's
// trace and of the clock of `domain`
// (recording/sample_format.h). Readers of the recording check their content.
absl::Status CheckChunks(Bytes chunks, DomainId domain);

}  // namespace xenoscope::sampler
