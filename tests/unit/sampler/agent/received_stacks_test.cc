// What a recorder makes of the stacks that an agent sends: those of an honest one as they are, and
// of a hostile one no more than the limits allow.
#include "sampler/agent/received_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "recording/sample_format.h"
#include "tests/unit/sampler/agent/chunks_with_stacks.h"

namespace xenoscope::sampler::agent {
namespace {

using recording::StackEntry;
using recording::UserStack;
using ::testing::ElementsAre;

constexpr uint32_t kRegisterBytes = sizeof(UserRegisters);
constexpr uint32_t kPiece = 64;
constexpr uint64_t kBatch = 4096;

class ReceivedStacksTest : public ::testing::Test {
 protected:
  // Returns what comes of the stack of each sample in these chunks: its bytes as text, or "-".
  std::vector<std::string> Read(const std::vector<std::byte>& chunks) {
    const recording::FileHeader header;
    const Bytes header_bytes = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> file(header_bytes.begin(), header_bytes.end());
    file.insert(file.end(), chunks.begin(), chunks.end());
    auto reader = recording::SampleReader::Open(file, 1);
    EXPECT_TRUE(reader.ok());
    std::vector<std::string> found;
    stacks_.BeginBatch();
    while (reader->Next() != nullptr) {
      const UserStack* const stack = stacks_.StackOf(*reader);
      found.emplace_back(stack == nullptr ? "-" : AsText(stack->bytes));
      if (stack != nullptr) registers_.push_back(stack->registers[0]);
    }
    return found;
  }

  ReceivedStacks stacks_{kPiece, kBatch};
  std::vector<uint64_t> registers_;
};

UserStack Of(uint64_t registers, std::string_view text) {
  return StackOf(registers, AsBytes(text));
}

TEST_F(ReceivedStacksTest, AreThoseOfTheSamples) {
  const auto chunks = ChunksWithStacks(
      {Of(1, "ones"), Of(2, "second")},
      {{0, kRegisterBytes + 4}, {}, {kRegisterBytes + 4, kRegisterBytes + 6}}, Tsc{5});
  EXPECT_THAT(Read(chunks), ElementsAre("ones", "-", "second"));
  EXPECT_THAT(registers_, ElementsAre(1, 2));
  EXPECT_EQ(stacks_.damaged() + stacks_.left_out(), 0U);
}

// One block could else become memory for each of many samples.
TEST_F(ReceivedStacksTest, ShareNoBytes) {
  const StackEntry whole{0, kRegisterBytes + 4};
  EXPECT_THAT(Read(ChunksWithStacks({Of(1, "ones")}, {whole, whole, {1, kRegisterBytes}}, Tsc{5})),
              ElementsAre("ones", "-", "-"));
  EXPECT_EQ(stacks_.damaged(), 2U);
}

TEST_F(ReceivedStacksTest, AreWithinTheirBlockAndPiece) {
  const std::string longer(kPiece + 1, 'x');
  EXPECT_THAT(Read(ChunksWithStacks({Of(1, longer)}, {{0, kRegisterBytes + kPiece + 1}}, Tsc{5})),
              ElementsAre("-"))
      << "longer than was asked for";
  for (const StackEntry& entry :
       {StackEntry{1, kRegisterBytes + 4}, StackEntry{0, kRegisterBytes - 1},
        StackEntry{~0U, kRegisterBytes}, StackEntry{0, ~0U}, StackEntry{~0U, ~0U}}) {
    EXPECT_THAT(Read(ChunksWithStacks({Of(1, "ones")}, {entry}, Tsc{5})), ElementsAre("-"));
  }
  EXPECT_EQ(stacks_.damaged(), 6U);
}

TEST_F(ReceivedStacksTest, OfADamagedOrMissingBlockAreRefused) {
  std::vector<std::byte> chunks =
      ChunksWithStacks({Of(1, "ones")}, {{0, kRegisterBytes + 4}}, Tsc{5});
  std::vector<std::byte> without = chunks;
  const size_t first =
      sizeof(recording::ChunkHeader) + Load<recording::ChunkHeader>(chunks, 0)->count;
  without.erase(without.begin(), without.begin() + static_cast<std::ptrdiff_t>(first));
  EXPECT_THAT(Read(without), ElementsAre("-"));
  chunks[sizeof(recording::ChunkHeader)] ^= std::byte{1};  // its checksum is wrong
  EXPECT_THAT(Read(chunks), ElementsAre("-"));
  EXPECT_EQ(stacks_.damaged(), 2U);
}

// A block of some hundred bytes may become 4 MiB.
TEST_F(ReceivedStacksTest, DecompressWithinTheLimitOfABatch) {
  const std::string large(kBatch, '\0');
  std::vector<std::byte> chunks = ChunksWithStacks({Of(1, large)}, {{0, kRegisterBytes}}, Tsc{5});
  const auto small = ChunksWithStacks({Of(2, "small")}, {{0, kRegisterBytes + 5}}, Tsc{6});
  chunks.insert(chunks.end(), small.begin(), small.end());
  EXPECT_THAT(Read(chunks), ElementsAre("-", "small"));
  EXPECT_EQ(stacks_.left_out(), 1U);
  EXPECT_EQ(stacks_.damaged(), 0U);
  std::vector<std::byte> many;
  for (int i = 0; i < 40; ++i) many.insert(many.end(), small.begin(), small.end());
  const std::vector<std::string> found = Read(many);
  EXPECT_EQ(std::ranges::count(found, "small"), kBatch / (kRegisterBytes + 5));
}

TEST(ReceivedStacks, AreIgnoredWhereNoneWereRequested) {
  ReceivedStacks stacks(0, kBatch);
  const recording::FileHeader header;
  std::vector<std::byte> file(sizeof header);
  std::memcpy(file.data(), &header, sizeof header);
  const auto chunks = ChunksWithStacks({Of(1, "ones")}, {{0, kRegisterBytes + 4}}, Tsc{5});
  file.insert(file.end(), chunks.begin(), chunks.end());
  auto reader = recording::SampleReader::Open(file, 1);
  ASSERT_NE(reader->Next(), nullptr);
  EXPECT_EQ(stacks.StackOf(*reader), nullptr);
  EXPECT_EQ(stacks.damaged() + stacks.left_out(), 0U);
}

}  // namespace
}  // namespace xenoscope::sampler::agent
