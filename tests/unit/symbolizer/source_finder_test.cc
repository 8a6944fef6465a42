// The sources that are shown: debug information may name any file, but only sources in the user's
// directories are opened.
#include "symbolizer/source_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class SourceFinderTest : public testing::Test {
 protected:
  SourceFinderTest() {
    std::string pattern = testing::TempDir() + "sources.XXXXXX";
    directory_ = mkdtemp(pattern.data());
    Write("tree/xen/common/sched.c", "sched");
    Write("tree/sched.c", "another");
    Write("tree/shadow", "root:$6$");
    Write("secret.c", "secret");
    fs::create_symlink("../secret.c", directory_ / "tree/link.c");
  }
  ~SourceFinderTest() override { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << text;
  }
  absl::StatusOr<std::string> Open(const std::string& path) const {
    const auto content = SourceFinder({(directory_ / "tree").string()}).Open(path);
    if (!content.ok()) return content.status();
    return std::string(AsText(content->bytes()));
  }

  fs::path directory_;
};

TEST_F(SourceFinderTest, FindsLongestMatchingPathSuffix) {
  EXPECT_EQ(Open("/build/xen-4.17/xen/common/sched.c").value(), "sched");
  EXPECT_EQ(Open("/xen/common/../common/sched.c").value(), "sched");
  EXPECT_EQ(Open("/elsewhere/sched.c").value(), "another");
}

TEST_F(SourceFinderTest, FindsOnlySources) {
  EXPECT_THAT(Message(Open("/etc/shadow").status()), HasSubstr("not the name of a source file"));
}

TEST_F(SourceFinderTest, DoesNotLeaveTheDirectory) {
  EXPECT_FALSE(Open("../secret.c").ok());
  EXPECT_FALSE(Open((directory_ / "secret.c").string()).ok());
  EXPECT_FALSE(Open("link.c").ok());
  EXPECT_THAT(Message(Open("/x/gone.c").status()), HasSubstr("--source DIR"));
}

TEST_F(SourceFinderTest, RootFindsAbsolutePaths) {
  const SourceFinder finder({"/"});
  EXPECT_TRUE(finder.Open((directory_ / "secret.c").string()).ok());
  EXPECT_FALSE(finder.Open("/nowhere" + (directory_ / "secret.c").string()).ok());
}

}  // namespace
}  // namespace xenoscope::symbolizer
