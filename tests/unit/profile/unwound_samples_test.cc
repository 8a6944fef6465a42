// Samples with stacks become samples with callers, and all else of a recording stays as it is.
#include "profile/unwound_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "fake_recording.h"
#include "profile/recorded_samples.h"

namespace xenoscope::profile {
namespace {

using recording::Recording;
using recording::StackEntry;
using testing::ElementsAre;

class UnwoundSamples : public testing::Test {
 protected:
  UnwoundSamples() {
    recorded_.info.sources[0].stacks.emplace();
    recorded_.Exec(1, 7, "web");
  }
  // A sample at `address` with a stack of these words and the frame pointer at its begin.
  void AddSample(uint64_t when, Mode mode, Address address, const std::vector<uint64_t>& words) {
    recording::UserStack stack;
    stack.registers[kRip] = mode == Mode::kUser ? address : 0x1500;
    stack.registers[kRsp] = stack.registers[kRbp] = 0x8000;
    stack.bytes = std::as_bytes(std::span(words));
    recording::TimedEntry entry;
    entry.address = address;
    entry.mode = static_cast<uint8_t>(mode);
    entry.pid = entry.tid = 7;
    entry.begin = when;
    entry.end = when + 1;
    chunk_.Add(entry, words.empty() ? StackEntry() : block_.Add(stack), {});
  }
  void WriteChunk() {
    recorded_.Stacks(chunk_, block_);
    chunk_.Clear();
    block_.Clear();
  }

  // What the samples are after unwinding: the address, then the callers.
  std::vector<std::vector<Address>> Chains(Recording& recording) {
    auto processes = RecordedProcesses::Read(recording);
    symbolizer::ProcessImages images;
    // Anonymous executable memory: no table, so that frame pointers are followed.
    const uint32_t file = images.AddFile(kD1, "//anon", "");
    images.SetMaps(processes->SpaceOf(kD1, 7, Tsc{5}), kD1, 7, {{0x1000, 0x2000, 0, file}});
    auto counts = UnwindStacks(recording, *processes, images);
    EXPECT_TRUE(counts.ok()) << counts.status();
    counts_ = *counts;
    auto samples = RecordedSamples::Open(recording, {}, &*processes);
    std::vector<std::vector<Address>> chains;
    while (const recording::Sample* sample = samples->Next()) {
      std::vector<Address>& chain = chains.emplace_back();
      chain.push_back(sample->address);
      for (size_t i = 0; i < sample->callers.size(); ++i) chain.push_back(sample->callers.at(i));
    }
    return chains;
  }

  FakeRecording recorded_;
  recording::TimedChunk chunk_;
  recording::StackBlock block_;
  UnwindCounts counts_;
};

constexpr Address kEnd = 0;  // the return address of the outermost function

TEST_F(UnwoundSamples, HaveCallersAndSayWhereTheyEnd) {
  AddSample(10, Mode::kUser, 0x1000, {0x8010, 0x1100, 0x8020, kEnd});
  AddSample(11, Mode::kKernel, 0xffffffff81000000, {0x8010, 0x1100, 0x8020, kEnd});
  AddSample(12, Mode::kUser, 0x1000, {0x8010, 0x1100});
  AddSample(13, Mode::kUser, 0x1000, {});
  WriteChunk();
  recorded_.Sample(14, 15, 0xffffffff81000000);
  Recording recording = recorded_.Open();
  EXPECT_THAT(
      Chains(recording),
      ElementsAre(ElementsAre(0x1000, 0x1100), ElementsAre(0xffffffff81000000, 0x1500, 0x1100),
                  ElementsAre(0x1000, 0x1100, AddressOf(ChainEnd::kNoTable)),
                  ElementsAre(0x1000, AddressOf(ChainEnd::kNoStack)),
                  ElementsAre(0xffffffff81000000)));
  EXPECT_EQ(counts_.of(ChainEnd::kOutermost), 2U);
  EXPECT_EQ(counts_.of(ChainEnd::kNoTable), 1U);
  EXPECT_EQ(counts_.of(ChainEnd::kNoStack), 1U);
  EXPECT_EQ(counts_.Chains(), 4U);
  EXPECT_EQ(counts_.by_frame_pointer, 3U);
}

TEST_F(UnwoundSamples, KeepTheOrderOfManyChunks) {
  for (uint64_t i = 0; i < 200; ++i) {
    AddSample(10 + i, Mode::kUser, 0x1000 + i, {0x8010, 0x1100, 0x8020, kEnd});
    WriteChunk();
  }
  Recording recording = recorded_.Open();
  const auto chains = Chains(recording);
  ASSERT_THAT(chains, testing::SizeIs(200));
  for (size_t i = 0; i < 200; ++i) EXPECT_THAT(chains[i], ElementsAre(0x1000 + i, 0x1100));
}

TEST_F(UnwoundSamples, StayWhereTheirStacksAreDamaged) {
  AddSample(10, Mode::kUser, 0x1000, {0x8010, 0x1100, 0x8020, kEnd});
  WriteChunk();
  AddSample(11, Mode::kUser, 0x1001, {0x8010, 0x1100, 0x8020, kEnd});
  WriteChunk();
  recorded_.Damage(recording::ChunkKind::kStacks, /*number=*/1);
  Recording recording = recorded_.Open();
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(0x1000, 0x1100),
                                             ElementsAre(0x1001, AddressOf(ChainEnd::kNoStack))))
      << "the stacks of the first block are of other samples";
  EXPECT_EQ(counts_.damaged_blocks, 1U);
}

}  // namespace
}  // namespace xenoscope::profile
