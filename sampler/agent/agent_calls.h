// What `record` and the process that drives an agent for it (sampler/agent/agent_worker.h) say to
// each other: calls, and a reply to each. The replies come from a process that a guest may have
// taken over, so their format is as simple as it can be, and they are checked here.
//
// A frame, little-endian: u32 length of what follows, then that. A text is a u32 length and so many
// bytes; a list a u32 count and its items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "recording/info.h"

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
  kGreet,      // asks for nothing but the agent's name
  kInterrupt,  // has no reply: the call that goes on is to wait no longer
};

struct AgentCallMessage {
  AgentCall call = AgentCall::kInterrupt;
  std::vector<recording::EventInfo> events{};  // kNumberEvents: all there are
  uint64_t first = 0;                          // kNumberEvents: the first of agents' events
  recording::SymbolFile::Kind file = recording::SymbolFile::Kind::kKallsyms;  // kFetch
};

// Everything that can be asked of a source (sampler/source.h), as it is after the call.
struct AgentState {
  bool is_member = false;
  int64_t due_ns = 0;  // of the steady clock
  std::vector<recording::EventInfo> events;
  std::vector<std::string> notes;
  std::vector<std::string> final_notes;
  std::vector<recording::StreamInfo> streams;  // without their source's name
};

struct AgentReply {
  absl::Status status;  // of the call
  bool flag = false;    // kEnlist: its result; kFetch: more of the file follows
  std::string program;  // kGreet: what the agent calls itself
  AgentState state;
  std::vector<std::byte> bytes;  // kCollect, kStop: chunks of samples; kFetch: a part of the file
};

// Whole frames.
std::vector<std::byte> Encode(const AgentCallMessage& message);
std::vector<std::byte> Encode(const AgentReply& reply);

// What is behind the length of a frame.
absl::StatusOr<AgentCallMessage> DecodeCall(Bytes payload);
// A reply about `domain`, which has `vcpus`. Errors (InvalidArgument): lists are too long, a vCPU
// is not the domain's, something is missing or left over. Texts are cut, and control characters
// replaced.
absl::StatusOr<AgentReply> DecodeReply(Bytes payload, DomainId domain, uint32_t vcpus);

// Whether `chunks` are whole chunks of samples and processes of `domain`
// (recording/sample_format.h). What is in them a recording's readers check.
absl::Status CheckChunks(Bytes chunks, DomainId domain);

}  // namespace xenoscope::sampler
