#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace xenoscope {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "mapped_file.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path dir_;
};

TEST_F(MappedFileTest, HasTheBytesOfAFile) {
  const std::string path = dir_ / "file";
  std::ofstream(path) << "abc";
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto bytes = file->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "abc");
}

TEST_F(MappedFileTest, RefusesWhatIsNoRegularFileWithoutOpeningIt) {
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // Opening a pipe that nobody writes to would wait for ever.
  for (const std::string& path : {pipe, dir_.string(), std::string("/dev/null")}) {
    const auto file = MappedFile::Open(path);
    EXPECT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().message(), path + " is not a regular file");
  }
}

TEST_F(MappedFileTest, NamesTheFileThatIsMissing) {
  const std::string path = dir_ / "missing";
  const auto file = MappedFile::Open(path);
  EXPECT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("cannot open " + path), std::string::npos)
      << file.status();
}

}  // namespace
}  // namespace xenoscope
