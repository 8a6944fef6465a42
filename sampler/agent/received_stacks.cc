#include "sampler/agent/received_stacks.h"

namespace xenoscope::sampler::agent {

using recording::StackEntry;
using recording::UserStack;

void ReceivedStacks::BeginBatch() {
  batch_left_ = batch_bytes_;
  opened_.reset();
}

void ReceivedStacks::Open(const recording::Chunk& chunk) {
  opened_ = chunk.at;
  used_ = 0;
  if (chunk.header.items > batch_left_) {
    state_ = BlockState::kBeyondLimit;
    return;
  }
  batch_left_ -= chunk.header.items;
  state_ = block_.Read(chunk).ok() ? BlockState::kGood : BlockState::kDamaged;
}

const UserStack* ReceivedStacks::StackOf(const recording::SampleReader& reader) {
  const std::optional<StackEntry>& entry = reader.stack();
  if (piece_bytes_ == 0 || !entry || entry->size == 0) return nullptr;
  const recording::Chunk* const chunk = reader.stacks();
  if (chunk != nullptr && opened_ != chunk->at) Open(*chunk);
  if (chunk != nullptr && state_ == BlockState::kBeyondLimit) {
    ++left_out_;
    return nullptr;
  }
  const bool is_good = chunk != nullptr && state_ == BlockState::kGood && entry->at >= used_;
  stack_ = is_good ? block_.At(*entry) : std::nullopt;
  if (!stack_ || stack_->bytes.size() > piece_bytes_) {
    ++damaged_;
    return nullptr;
  }
  used_ = uint64_t{entry->at} + entry->size;
  return &*stack_;
}

}  // namespace xenoscope::sampler::agent
