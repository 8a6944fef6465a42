// Samples with stacks, as the agent of a guest sends them.
#pragma once

#include <vector>

#include "recording/sample_writer.h"
#include "recording/stack_block.h"

namespace xenoscope::sampler {

// Returns the chunks of samples of user mode, one for each of `entries`, which say where in a block
// of `stacks` theirs are; all of them are taken at `when`.
inline std::vector<std::byte> ChunksWithStacks(const std::vector<recording::UserStack>& stacks,
                                               const std::vector<recording::StackEntry>& entries,
                                               Tsc when) {
  recording::StackBlock block;
  for (const recording::UserStack& stack : stacks) block.Add(stack);
  recording::TimedChunk chunk;
  for (const recording::StackEntry& stack : entries) {
    recording::TimedEntry entry;
    entry.address = 0x1234;
    entry.vcpu = 1;
    entry.pid = entry.tid = 70;
    entry.begin = when.value;
    entry.end = when.value + 1;
    chunk.Add(entry, stack, {});
  }
  auto writer = recording::SampleWriter::InMemory();
  writer.Append(DomainId{0}, chunk, block);
  return writer.Take();
}

// Returns the piece `bytes` with registers that all are `registers`.
inline recording::UserStack StackOf(uint64_t registers, Bytes bytes) {
  recording::UserStack stack{{}, bytes};
  stack.registers.fill(registers);
  return stack;
}

}  // namespace xenoscope::sampler
