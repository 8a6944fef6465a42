// What is made in a directory is new, is its owner's alone, and is where it was meant to be.
#include "base/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"

namespace xenoscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class DirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "directory_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    Write("victim", "precious");
    fs::create_directory(root_ / "other");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mode_t ModeOf(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(lstat(Path(name).c_str(), &status), 0) << name;
    return status.st_mode & 07777;
  }
  Directory Root() const { return *Directory::Open(root_.string()); }

  fs::path root_;
};

TEST_F(DirectoryTest, CreatesWithOwnerOnlyPermissions) {
  const mode_t before = umask(0);
  const auto made = Root().Make("new");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->Create("a/b/file").ok());
  EXPECT_TRUE(made->Replace("c/text", AsBytes("text")).ok());
  umask(before);
  for (const std::string name : {"new", "new/a", "new/a/b", "new/c"}) {
    EXPECT_EQ(ModeOf(name), 0700) << name;
  }
  for (const std::string name : {"new/a/b/file", "new/c/text"}) {
    EXPECT_EQ(ModeOf(name), 0600) << name;
  }
}

TEST_F(DirectoryTest, RefusesExistingNames) {
  fs::create_symlink("victim", Path("to_file"));
  fs::create_symlink("other", Path("to_directory"));
  fs::create_symlink("nowhere", Path("to_nothing"));
  const Directory root = Root();
  for (const std::string name : {"victim", "other", "to_file", "to_directory", "to_nothing"}) {
    EXPECT_EQ(root.Make(name).status().code(), absl::StatusCode::kAlreadyExists) << name;
    EXPECT_EQ(root.Create(name).status().code(), absl::StatusCode::kAlreadyExists) << name;
  }
  EXPECT_EQ(Read("victim"), "precious");
  EXPECT_FALSE(fs::exists(Path("nowhere")));
}

TEST_F(DirectoryTest, RefusesSymbolicLinks) {
  fs::create_symlink("other", Path("link"));
  const Directory root = Root();
  EXPECT_FALSE(root.Create("link/file").ok());
  EXPECT_FALSE(root.Replace("link/file", AsBytes("x")).ok());
  EXPECT_FALSE(root.OpenDirectory("link").ok());
  EXPECT_TRUE(fs::is_empty(Path("other")));
}

TEST_F(DirectoryTest, ReplaceDoesNotFollowLinks) {
  fs::create_symlink("victim", Path("link"));
  fs::create_symlink("victim", Path("link.new"));
  EXPECT_TRUE(Root().Replace("link", AsBytes("mine")).ok());
  EXPECT_EQ(Read("link"), "mine");
  EXPECT_EQ(Read("victim"), "precious");
  EXPECT_FALSE(fs::exists(fs::symlink_status(Path("link.new"))));
}

TEST_F(DirectoryTest, FailedReplaceLeavesNoFile) {
  Write("text", "first");
  const absl::Status status =
      Root().Replace("text", [](int /*file*/) { return InvalidError("no"); });
  EXPECT_EQ(Message(status), "no");
  EXPECT_EQ(Read("text"), "first");
  EXPECT_FALSE(fs::exists(Path("text.new")));
}

TEST_F(DirectoryTest, OpenDirectorySurvivesRename) {
  const auto made = Root().Make("new");
  ASSERT_TRUE(made.ok());
  fs::rename(Path("new"), Path("moved"));
  fs::create_symlink("other", Path("new"));
  EXPECT_TRUE(made->Create("file").ok());
  EXPECT_TRUE(fs::exists(Path("moved/file")));
  EXPECT_TRUE(fs::is_empty(Path("other")));
}

TEST_F(DirectoryTest, RemoveAllDoesNotFollowLinks) {
  fs::create_directories(Path("old/sub"));
  fs::create_symlink("../victim", Path("old/link"));
  fs::create_symlink("../../other", Path("old/sub/link"));
  Write("other/kept", "x");
  fs::create_symlink("other", Path("link"));
  EXPECT_FALSE(Root().RemoveAll("link").ok());
  EXPECT_TRUE(Root().RemoveAll("old").ok());
  EXPECT_FALSE(fs::exists(Path("old")));
  EXPECT_EQ(Read("victim"), "precious");
  EXPECT_EQ(Read("other/kept"), "x");
}

TEST_F(DirectoryTest, RemoveAllLimitsDepth) {
  fs::create_directories(Path("old/1/2/3/4/5/6/7/8/9"));
  EXPECT_THAT(std::string(Message(Root().RemoveAll("old"))), HasSubstr("deeper"));
  EXPECT_TRUE(fs::exists(Path("old/1/2/3/4/5/6/7")));
}

TEST_F(DirectoryTest, RenameDoesNotOverwrite) {
  fs::create_directory(Path("empty"));
  EXPECT_FALSE(Root().Rename("other", "empty").ok());
  EXPECT_FALSE(Root().Rename("other", "victim").ok());
  EXPECT_TRUE(Root().Rename("other", "free").ok());
  EXPECT_THAT(*Root().List(), UnorderedElementsAre("victim", "empty", "free"));
}

TEST_F(DirectoryTest, OpensParentDirectory) {
  struct Case {
    std::string path, name;  // an empty one: refused
  };
  for (const Case& c : {Case{"a.xeno", "a.xeno"}, Case{"other/a.xeno///", "a.xeno"},
                        Case{"other/..", ""}, Case{"other/.", ""}, Case{".", ""}}) {
    const auto above = Directory::OpenParent(Path(c.path));
    EXPECT_EQ(above.ok() ? above->second : "", c.name) << c.path;
  }
  EXPECT_FALSE(Directory::OpenParent("/").ok());
  EXPECT_FALSE(Directory::OpenParent("").ok());
  EXPECT_EQ(Directory::OpenParent("relative")->second, "relative");
  EXPECT_EQ(Directory::OpenParent("/top")->first.path(), "/");
  EXPECT_EQ(Directory::OpenParent(Path("none/a.xeno")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DirectoryTest, SharesEqualFilesOnly) {
  Write("same", "bytes");
  Write("other/same", "bytes");
  Write("differs", "bytes");
  Write("other/differs", "BYTES");
  Write("other/linked", "precious");
  fs::create_symlink(Path("victim"), Path("linked"));
  const Directory other = *Root().OpenDirectory("other");
  for (int time = 0; time < 2; ++time) EXPECT_TRUE(Root().ShareEqualFile("same", other).ok());
  EXPECT_TRUE(fs::equivalent(Path("same"), Path("other/same")));
  EXPECT_TRUE(Root().ShareEqualFile("differs", other).ok());
  EXPECT_EQ(Read("differs"), "bytes");
  EXPECT_FALSE(Root().ShareEqualFile("linked", other).ok());
  EXPECT_FALSE(Root().ShareEqualFile("missing", other).ok());
  EXPECT_THAT(*Root().List(), UnorderedElementsAre("victim", "other", "same", "differs", "linked"));
}

}  // namespace
}  // namespace xenoscope
