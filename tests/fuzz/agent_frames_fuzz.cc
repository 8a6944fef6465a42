// Fuzzes what a guest's agent may send. There is no crash and no hang, and each message that is
// understood reads the same after it was encoded again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "sampler/agent/agent_messages.h"

namespace {

using xenoscope::Bytes;
namespace agent = xenoscope::sampler::agent;

// Reads all messages. Returns whether each, encoded again, reads back as itself.
bool ReadAll(agent::FrameReader& reader) {
  while (true) {
    const auto message = reader.Next();
    if (!message.ok() || !*message) return true;
    agent::FrameReader again;
    again.Add(agent::Encode(**message));
    const auto same = again.Next();
    if (!same.ok() || !*same || !(**same == **message) || again.Pending()) return false;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  agent::FrameReader whole;
  whole.Add(bytes);
  if (!ReadAll(whole)) std::abort();
  // Checksums would stop most inputs: the same bytes are also read as the payload of each kind, in
  // pieces.
  if (bytes.size() < 2 || bytes.size() > agent::kMaxPayload) return 0;
  agent::FrameReader pieces;
  const auto kind = static_cast<uint16_t>(data[0]);
  const auto frame = agent::EncodeFrame(kind, bytes.subspan(1));
  const size_t cut = data[1] % frame.size();
  pieces.Add(Bytes(frame).first(cut));
  if (!ReadAll(pieces)) std::abort();
  pieces.Add(Bytes(frame).subspan(cut));
  if (!ReadAll(pieces)) std::abort();
  return 0;
}
