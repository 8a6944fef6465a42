// The ring of slices keeps the newest ones, and knows which of them a store has.
#include "recording/slice_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SliceRingTest : public ::testing::Test {
 protected:
  SliceRingTest() : path_(::testing::TempDir() + "ring-" + std::to_string(getpid())) {
    fs::remove_all(path_);
  }
  ~SliceRingTest() override { fs::remove_all(path_); }

  SliceRing Open(const SliceRing::Limits& limits) {
    auto ring = SliceRing::Open(path_, limits);
    EXPECT_TRUE(ring.ok()) << ring.status();
    return *std::move(ring);
  }
  // Makes a slice of 1000 bytes that begins at this second.
  std::string Make(uint64_t second) {
    std::string name = SliceRing::NameAt(second * 1'000'000'000);
    fs::create_directories(path_ + "/" + name + "/samples");
    std::ofstream(path_ + "/" + name + "/samples/perf.samples") << std::string(1000, 'x');
    const std::ofstream info(path_ + "/" + name + "/recording.json");
    return name;
  }

  std::string path_;
};

TEST_F(SliceRingTest, NamesAreTimes) {
  EXPECT_EQ(SliceRing::NameAt(1'767'225'600'250'000'000), "2026-01-01T00-00-00.250Z.xeno");
}

TEST_F(SliceRingTest, KeepsTheNewestSlices) {
  const SliceRing ring = Open({.slices = 2});
  Make(1);
  const std::string second = Make(2);
  const std::string third = Make(3);
  EXPECT_EQ(*ring.Trim(), 1);
  EXPECT_THAT(*ring.Names(), ElementsAre(second, third));
}

TEST_F(SliceRingTest, KeepsTheNewestBytes) {
  const SliceRing ring = Open({.bytes = 2500});
  for (const uint64_t second : {1, 2, 3, 4}) Make(second);
  EXPECT_EQ(*ring.Trim(), 2);
  EXPECT_EQ(ring.Names()->size(), 2);
  EXPECT_EQ(*Open({.bytes = 1}).Trim(), 1);
  EXPECT_EQ(ring.Names()->size(), 1);
}

// Symbols are most of a short slice, and change seldom.
TEST_F(SliceRingTest, KeepsEqualSymbolsOnce) {
  const SliceRing ring = Open({.bytes = 12'500});
  const auto add = [&](uint64_t second, char content) {
    std::string name = Make(second);
    fs::create_directories(path_ + "/" + name + "/symbols");
    std::ofstream(path_ + "/" + name + "/symbols/xensyms") << std::string(8000, content);
    ring.ShareSymbols(name);
    return path_ + "/" + name + "/symbols/xensyms";
  };
  const std::string first = add(1, 'a');
  const std::string second = add(2, 'a');
  const std::string third = add(3, 'a');
  EXPECT_TRUE(fs::equivalent(first, third));
  EXPECT_EQ(*ring.Trim(), 0);  // 3 * 1000 + 8000
  const std::string changed = add(4, 'b');
  EXPECT_FALSE(fs::equivalent(third, changed));
  EXPECT_EQ(*ring.Trim(), 3);  // 1000 + 8000, and as much again
  std::string left;
  std::ifstream(changed) >> left;
  EXPECT_EQ(left, std::string(8000, 'b'));
}

// What a store has is no loss when it is removed.
TEST_F(SliceRingTest, CountsSlicesThatNoStoreHas) {
  const SliceRing ring = Open({.slices = 1});
  const std::string first = Make(1);
  const std::string second = Make(2);
  const std::string third = Make(3);
  EXPECT_THAT(*ring.Queued(third), ElementsAre(first, second));
  ASSERT_TRUE(ring.MarkPushed(first).ok());
  EXPECT_THAT(*ring.Queued(third), ElementsAre(second));
  EXPECT_EQ(*ring.Trim(), 1);
  EXPECT_THAT(*ring.Queued(third), IsEmpty());
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 1);
}

// A slice that was removed while it was pushed leaves no mark.
TEST_F(SliceRingTest, MarksNothingThatIsGone) {
  const SliceRing ring = Open({});
  ASSERT_TRUE(ring.MarkPushed(SliceRing::NameAt(0)).ok());
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(SliceRingTest, TouchesNothingElse) {
  const SliceRing ring = Open({.slices = 1});
  fs::create_directories(path_ + "/web.xeno");
  const std::ofstream file(path_ + "/notes");
  Make(1);
  Make(2);
  ASSERT_TRUE(ring.Trim().ok());
  EXPECT_TRUE(fs::exists(path_ + "/web.xeno"));
  EXPECT_TRUE(fs::exists(path_ + "/notes"));
}

TEST_F(SliceRingTest, RemovesWhatIsNoRecordingYet) {
  const SliceRing ring = Open({});
  const std::string whole = Make(1);
  const std::string remains = Make(2);
  fs::remove(path_ + "/" + remains + "/recording.json");
  EXPECT_THAT(*ring.Queued(SliceRing::NameAt(3'000'000'000)), ElementsAre(whole));
  EXPECT_FALSE(*ring.RemoveRemains(whole));
  EXPECT_TRUE(*ring.RemoveRemains(remains));
  EXPECT_THAT(*ring.Names(), ElementsAre(whole));
}

TEST_F(SliceRingTest, RemovesTheOldestButNotTheOnlyOne) {
  const SliceRing ring = Open({});
  Make(1);
  EXPECT_EQ(*ring.RemoveOldest(), 0);
  const std::string second = Make(2);
  EXPECT_EQ(*ring.RemoveOldest(), 1);
  EXPECT_THAT(*ring.Names(), ElementsAre(second));
}

}  // namespace
}  // namespace xenoscope::recording
