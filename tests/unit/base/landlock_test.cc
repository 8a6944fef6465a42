// What can be opened after a restriction, in a process made for it.
#include "base/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

namespace xenoscope {
namespace {

namespace fs = std::filesystem;

// The status with which a process ends that does this.
int StatusOf(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

int ErrorOfOpening(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  close(fd);
  return 0;
}

class LandlockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (StatusOf([] { return Landlock({}).Restrict() ? 1 : 0; }) == 0) {
      GTEST_SKIP() << "this kernel has no Landlock";
    }
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    for (const char* name : {"readable", "writable", "other"}) fs::create_directory(In(name));
    for (const char* name : {"readable/file", "other/file", "other/readable"}) {
      std::ofstream(In(name)) << "x";
    }
  }
  void TearDown() override { fs::remove_all(path_); }
  std::string In(const std::string& name) const { return path_ + "/" + name; }

  // errno of opening the file after what is readable, and what is writable, was allowed.
  int Opening(const std::string& name, int flags) const {
    return StatusOf([&] {
      Landlock allowed({});
      allowed.Read(In("readable"));
      allowed.Read(In("other/readable"));
      allowed.Read(In("missing"));
      allowed.Write(In("writable"));
      allowed.Restrict();
      return ErrorOfOpening(In(name), flags);
    });
  }

  std::string path_ = testing::TempDir() + "landlock.XXXXXX";
};

TEST_F(LandlockTest, DeniesUnlistedPaths) {
  struct Case {
    const char* name;
    int flags;
    int error;
  };
  const Case cases[] = {
      {"readable", O_RDONLY | O_DIRECTORY, 0},
      {"readable/file", O_RDONLY, 0},
      {"readable/file", O_RDWR, EACCES},
      {"readable/new", O_WRONLY | O_CREAT, EACCES},
      {"writable/new", O_RDWR | O_CREAT | O_TRUNC, 0},
      {"other", O_RDONLY | O_DIRECTORY, EACCES},
      {"other/file", O_RDONLY, EACCES},
      {"other/readable", O_RDONLY, 0},
      {"other/readable", O_WRONLY, EACCES},
      {"../../etc/shadow", O_RDONLY, EACCES},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(Opening(each.name, each.flags), each.error) << each.name << " " << each.flags;
  }
}

TEST_F(LandlockTest, DeniesExec) {
  const int error = StatusOf([] {
    Landlock allowed({});
    allowed.Read("/");
    allowed.Restrict();
    char* const none[] = {nullptr};
    execve("/bin/true", none, none);
    return errno;
  });
  EXPECT_EQ(error, EACCES);
}

TEST_F(LandlockTest, OpenFilesStayOpen) {
  const int error = StatusOf([this] {
    const int fd = open(In("other/file").c_str(), O_RDONLY | O_CLOEXEC);
    Landlock({}).Restrict();
    char byte = 0;
    return read(fd, &byte, 1) == 1 ? 0 : errno;
  });
  EXPECT_EQ(error, 0);
}

}  // namespace
}  // namespace xenoscope
