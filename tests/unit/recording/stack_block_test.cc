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
    texts.emplace_back(i * 8, static_cast<char>('a' + i % 26));
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

TEST(StackBlock, GivesBackPiecesOfOuterStacks) {
  StackBlock block;
  const std::string inner(8, 'a');
  const std::string outer(16, 'b');
  const StackEntry entry = block.Add({.bytes = AsBytes(inner)});
  const OuterStackEntry piece = block.AddOuter(0xffff'c900'0000'0000, AsBytes(outer));
  EXPECT_EQ(piece.address, 0xffff'c900'0000'0000U);
  ReadStackBlock read;
  ASSERT_TRUE(read.Read(ChunkOf(block.Compress(), block.size())).ok());
  EXPECT_EQ(AsText(read.At(entry)->bytes), inner);
  ASSERT_TRUE(read.OuterAt(piece));
  EXPECT_EQ(AsText(*read.OuterAt(piece)), outer);
  EXPECT_FALSE(read.OuterAt({0, piece.at, piece.size + 1})) << "beyond the end";
  EXPECT_FALSE(read.OuterAt({0, ~uint32_t{0}, ~uint32_t{0}}));
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
