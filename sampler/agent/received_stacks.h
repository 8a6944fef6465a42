// The registers and pieces of user stacks that an agent sent with its samples. They are as hostile
// as the rest: what a message makes of memory is bounded, and none is used but as bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "recording/sample_reader.h"
#include "recording/stack_block.h"

namespace xenoscope::sampler::agent {

class ReceivedStacks {
 public:
  // `piece_bytes` is the limit of a piece that was asked for; 0: stacks are passed over.
  // `batch_bytes` is the limit of what the blocks of a batch have when they are decompressed.
  ReceivedStacks(uint32_t piece_bytes, uint64_t batch_bytes)
      : piece_bytes_(piece_bytes), batch_bytes_(batch_bytes) {}

  // Begins a batch: samples of one reader.
  void BeginBatch();
  // Returns the stack of the reader's last sample, valid until the next call; null: it has none
  // that can be used. A block's bytes are of one sample each, so that no batch makes more of them
  // than its blocks have.
  const recording::UserStack* StackOf(const recording::SampleReader& reader);

  // Returns the number of stacks that are not as they may be.
  [[nodiscard]] uint64_t damaged() const { return damaged_; }
  // Returns the number of stacks beyond the limit of their batch.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  enum class BlockState : uint8_t { kGood, kDamaged, kBeyondLimit };

  void Open(const recording::Chunk& chunk);

  uint32_t piece_bytes_;
  uint64_t batch_bytes_;
  uint64_t batch_left_ = 0;         // bytes that the batch may still have
  std::optional<uint64_t> opened_;  // offset of the block that is open
  BlockState state_ = BlockState::kDamaged;
  uint64_t used_ = 0;  // bytes of the block before the first that no sample had yet
  recording::ReadStackBlock block_;
  std::optional<recording::UserStack> stack_;  // of the last sample
  uint64_t damaged_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace xenoscope::sampler::agent
