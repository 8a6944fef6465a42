// The limits of what pieces of stacks take on the disk.
#include "sampler/stacked_chunk.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace xenoscope::sampler {
namespace {

TEST(StackRate, BoundsBytesOverTime) {
  StackRate rate(1000);
  StackRate::Clock::time_point now{std::chrono::seconds(1)};
  uint64_t spent = 0;
  for (int tenths = 0; tenths < 100; ++tenths) {
    rate.Refill(now);
    for (int pieces = 0; pieces < 10 && rate.HasRoom(); ++pieces) {
      rate.Spend(50);
      spent += 50;
    }
    now += std::chrono::milliseconds(100);
  }
  EXPECT_LE(spent, 1000U * 11 + 50) << "ten seconds, and one ahead";
  EXPECT_GE(spent, 1000U * 10);
}

TEST(StackedChunk, LeavesOutStacksBeyondTheLimitInAll) {
  constexpr uint64_t kLimit = 20'000;
  StackedChunk chunk(DomainId{3}, {.piece_bytes = 1000, .bytes = kLimit});
  auto writer = recording::SampleWriter::InMemory();
  std::mt19937 random(1);
  std::vector<std::byte> piece(1000);
  constexpr int kSamples = 100;
  for (int i = 0; i < kSamples; ++i) {
    for (std::byte& byte : piece) byte = static_cast<std::byte>(random());  // so none gets smaller
    const recording::UserStack stack{{}, piece};
    chunk.Begin(std::chrono::steady_clock::now());
    chunk.Add({}, &stack, {}, writer);
    chunk.Add({}, nullptr, {}, writer);  // one whose stack is not known is not left out
    chunk.Write(writer);
  }
  const recording::StackInfo& info = chunk.info();
  EXPECT_EQ(info.piece_bytes, 1000U);
  EXPECT_EQ(info.pieces + info.left_out, uint64_t{kSamples});
  EXPECT_EQ(info.raw_bytes, info.pieces * (sizeof(UserRegisters) + 1000));
  EXPECT_GE(info.stored_bytes, kLimit);
  EXPECT_LT(info.stored_bytes, kLimit + 2000) << "one block may come on top";
}

}  // namespace
}  // namespace xenoscope::sampler
