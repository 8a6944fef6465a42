// Stacks of samples are what was added, and what is damaged is refused.
#include "recording/stack_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::recording {
namespace {

Chunk ChunkOf(Bytes compressed, size_t size) {
  Chunk chunk;
  chunk.header.kind = ChunkKind::kStacks;
  chunk.header.items = static_cast<uint32_t>(size);
  chunk.entries = compressed;
  return chunk;
}

TEST(StackBlock, GivesBackRegistersAndBytes) {
  StackBlock block;
  std::vector<StackEntry> entries;
  std::vector<std::string> texts;
  for (size_t i = 0; i < 100; ++i) {
    texts.push_back(std::string(i * 8, static_cast<char>('a' + i % 26)));
    UserStack stack;
    stack.registers[kRsp] = i;
    stack.bytes = AsBytes(texts.back());
    entries.push_back(block.Add(stack));
  }
  const Bytes compressed = block.Compress();
  EXPECT_LT(compressed.size(), block.size() / 4);
  ReadStackBlock read;
  ASSERT_TRUE(read.Read(ChunkOf(compressed, block.size())).ok());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto stack = read.At(entries[i]);
    ASSERT_TRUE(stack);
    EXPECT_EQ(stack->registers[kRsp], i);
    EXPECT_EQ(AsText(stack->bytes), texts[i]);
  }
  EXPECT_FALSE(read.At({0, 8})) << "smaller than the registers";
  EXPECT_FALSE(read.At({static_cast<uint32_t>(block.size()) - 100, 200})) << "beyond the end";
  EXPECT_FALSE(read.At({})) << "none";
}

TEST(StackBlock, RefusesWhatIsNotOfTheSizeThatItSays) {
  StackBlock block;
  block.Add({});
  const Bytes compressed = block.Compress();
  ReadStackBlock read;
  EXPECT_FALSE(read.Read(ChunkOf(compressed, block.size() + 1)).ok());
  EXPECT_FALSE(read.Read(ChunkOf(compressed, block.size() - 1)).ok());
  EXPECT_FALSE(read.Read(ChunkOf(compressed, size_t{kMaxStackBlockBytes} + 1)).ok());
  EXPECT_FALSE(read.Read(ChunkOf(AsBytes("no zstd data"), 100)).ok());
  EXPECT_FALSE(read.At({0, 136})) << "nothing is left of what was read before";
}

}  // namespace
}  // namespace xenoscope::recording
