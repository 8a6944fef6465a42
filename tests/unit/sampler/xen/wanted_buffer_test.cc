#include "sampler/xen/wanted_buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

TEST(WantedBuffer, IsTwiceAsLargeUpToALimitForAllPcpus) {
  EXPECT_EQ(WantedBufferPages(2, 1), 4U);
  EXPECT_EQ(WantedBufferPages(1024, 1), 2048U);
  EXPECT_EQ(WantedBufferPages(8192, 1), 16384U);
  EXPECT_EQ(WantedBufferPages(16384, 1), std::nullopt);
  EXPECT_EQ(WantedBufferPages(256, 64), 512U);
  EXPECT_EQ(WantedBufferPages(1024, 64), std::nullopt);
  EXPECT_EQ(WantedBufferPages(1024, 0), 2048U);
}

class WantedBufferFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(directory_); }
  void TearDown() override { fs::remove_all(directory_); }
  const fs::path directory_ =
      fs::temp_directory_path() / ("wanted_buffer_test." + std::to_string(getpid()));
  const std::string file_ = directory_ / "pages";
};

TEST_F(WantedBufferFile, IsReadAsItWasWritten) {
  EXPECT_EQ(ReadWantedBuffer(file_), std::nullopt);
  ASSERT_TRUE(WriteWantedBuffer(file_, 2048).ok());
  EXPECT_EQ(ReadWantedBuffer(file_), 2048U);
  ASSERT_TRUE(WriteWantedBuffer(file_, 16384).ok());
  EXPECT_EQ(ReadWantedBuffer(file_), 16384U);
}

TEST_F(WantedBufferFile, OtherContentIsNone) {
  fs::create_directory(directory_);
  for (const char* text : {"", "0", "-1", "16385", "many", "12 34"}) {
    std::ofstream(file_) << text;
    EXPECT_EQ(ReadWantedBuffer(file_), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace xenoscope::sampler
