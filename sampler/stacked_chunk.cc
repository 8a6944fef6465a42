#include "sampler/stacked_chunk.h"

namespace xenoscope::sampler {

StackedChunk::StackedChunk(DomainId domain, const StackLimits& limits)
    : domain_(domain), limits_(limits), rate_(limits.bytes_per_second) {
  info_.piece_bytes = limits.piece_bytes;
}

void StackedChunk::Add(const recording::TimedEntry& entry, const recording::UserStack* stack,
                       std::span<const Address> callers, recording::SampleWriter& writer) {
  recording::StackEntry at;
  if (stack != nullptr && HasRoom()) {
    at = block_.Add(*stack);
    ++info_.pieces;
    info_.raw_bytes += at.size;
  } else if (stack != nullptr) {
    ++info_.left_out;
  }
  samples_.Add(entry, at, callers);
  if (block_.IsFull()) Write(writer);
}

void StackedChunk::Write(recording::SampleWriter& writer) {
  const uint64_t stored = writer.Append(domain_, samples_, block_);
  info_.stored_bytes += stored;
  rate_.Spend(stored);
  samples_.Clear();
  block_.Clear();
}

}  // namespace xenoscope::sampler
