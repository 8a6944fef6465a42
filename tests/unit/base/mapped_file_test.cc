#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"

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

TEST_F(MappedFileTest, MapsFileContents) {
  const std::string path = dir_ / "file";
  std::ofstream(path) << "abc";
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto bytes = file->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "abc");
}

TEST_F(MappedFileTest, RefusesNonRegularFiles) {
  const std::string pipe = dir_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // Opening a pipe that nobody writes to would wait for ever.
  for (const std::string& path : {pipe, dir_.string(), std::string("/dev/null")}) {
    const auto file = MappedFile::Open(path);
    EXPECT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.status().message(), path + " is not a regular file");
  }
}

TEST_F(MappedFileTest, ErrorNamesMissingFile) {
  const std::string path = dir_ / "missing";
  const auto file = MappedFile::Open(path);
  EXPECT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("cannot open " + path), std::string::npos)
      << file.status();
}

using testing::Contains;
using testing::Not;

// The byte there: the compiler must not know that nothing has been written since.
int ByteAt(Bytes bytes, size_t offset) {
  return static_cast<int>(*static_cast<const volatile std::byte*>(bytes.data() + offset));
}

TEST_F(MappedFileTest, TruncationReadsAsZerosAndIsReported) {
  constexpr size_t kPage = 4096;
  struct Case {
    const char* name;
    size_t size;
    size_t cut_to;
    int last_byte;  // what is read at the end then
    bool is_cut;
  };
  constexpr Case kCases[] = {
      {"untouched", 4 * kPage, 4 * kPage, 'x', false},
      {"longer", 4 * kPage, 5 * kPage, 'x', false},
      {"by pages", 4 * kPage, kPage, 0, true},
      {"to nothing", 4 * kPage, 0, 0, true},
      {"within the last page", 4 * kPage, 4 * kPage - 10, 0, true},  // without a fault
  };
  for (const Case& c : kCases) {
    const std::string path = dir_ / c.name;
    std::ofstream(path) << std::string(c.size, 'x');
    {
      const auto file = MappedFile::Open(path);
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ(ByteAt(file->bytes(), 0), 'x');
      ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(c.cut_to)), 0);
      EXPECT_EQ(ByteAt(file->bytes(), c.size - 1), c.last_byte) << c.name;
      EXPECT_EQ(ByteAt(file->bytes(), kPage), c.cut_to > kPage ? 'x' : 0) << c.name;
      EXPECT_EQ(std::ranges::count(TruncatedMappings(), path), c.is_cut ? 1 : 0) << c.name;
    }
    EXPECT_EQ(std::ranges::count(TruncatedMappings(), path), c.is_cut ? 1 : 0) << c.name;
  }
}

TEST_F(MappedFileTest, ReplacedFileIsNotTruncated) {
  const std::string path = dir_ / "file";
  std::ofstream(path) << "as it was";
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(dir_ / "other") << "short";
  std::filesystem::rename(dir_ / "other", path);
  EXPECT_EQ(ByteAt(file->bytes(), 0), 'a');
  EXPECT_THAT(TruncatedMappings(), Not(Contains(path)));
}

TEST_F(MappedFileTest, TracksManyMappings) {
  constexpr size_t kFiles = 200;
  std::vector<MappedFile> files;
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string path = dir_ / std::to_string(i);
    std::ofstream(path) << std::string(10'000, 'x');
    auto file = MappedFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    files.push_back(*std::move(file));
  }
  files.erase(files.begin() + 10, files.begin() + 20);
  const MappedFile moved = std::move(files.back());
  ASSERT_EQ(truncate(moved.name().c_str(), 0), 0);
  EXPECT_EQ(ByteAt(moved.bytes(), 9'999), 0);
  EXPECT_EQ(ByteAt(files[50].bytes(), 9'999), 'x');
  EXPECT_THAT(TruncatedMappings(), Contains(moved.name()));
}

using MappedFileDeathTest = MappedFileTest;

TEST_F(MappedFileDeathTest, OtherFaultsReachDefaultHandler) {
  const std::string path = dir_ / "file";
  std::ofstream(path) << "x";
  const auto file = MappedFile::Open(path);
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  EXPECT_DEATH(raise(SIGBUS), "AddressSanitizer: BUS");  // whose handler was there before
#else
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
#endif
}

}  // namespace
}  // namespace xenoscope
