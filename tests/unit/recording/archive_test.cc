#include "recording/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

class ArchiveTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "archive_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    fs::create_directories(directory_ / "in/symbols/images");
  }
  void TearDown() override { fs::remove_all(directory_); }

  // Packs and unpacks, and returns the result of UnpackRecording.
  absl::Status ThereAndBack(const std::vector<AddedFile>& added = {}) {
    const std::string file = directory_ / "a.tar.zst";
    XENOSCOPE_RETURN_IF_ERROR(PackRecording(directory_ / "in", added, file));
    return UnpackRecording(file, directory_ / "out");
  }
  std::string Unpacked(const std::string& name) const {
    std::ifstream file(directory_ / "out" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path directory_;
};

TEST_F(ArchiveTest, AcceptsAnyFileNames) {
  const std::string longer_than_tars_own_field(120, 'x');
  const std::vector<std::string> names = {
      "plain", "größe", "日本語", "no utf-8 \xff\xc3", "a\nb", longer_than_tars_own_field + "ü"};
  for (const std::string& name : names) std::ofstream(directory_ / "in" / name) << "of " << name;
  const std::string added = "symbols/images/ört";
  const std::string content = "added";
  const absl::Status status = ThereAndBack({{added, AsBytes(content)}});
  ASSERT_TRUE(status.ok()) << status;
  for (const std::string& name : names) EXPECT_EQ(Unpacked(name), "of " + name);
  EXPECT_EQ(Unpacked(added), content);
}

TEST_F(ArchiveTest, RefusesOversizedContentsAndLeavesNoFiles) {
  std::ofstream(directory_ / "in/zeros").close();
  fs::resize_file(directory_ / "in/zeros", uint64_t{100} << 20);
  const absl::Status status = ThereAndBack();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("XENOSCOPE_MAX_UNPACKED"));
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

}  // namespace
}  // namespace xenoscope::recording
