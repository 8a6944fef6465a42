// Build-ids of untrusted files.
#include "sampler/build_ids.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string OwnProgram() { return fs::read_symlink("/proc/self/exe").string(); }

class Directory {
 public:
  Directory() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { fs::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_ = testing::TempDir() + "build_ids.XXXXXX";
};

TEST(BuildIdsTest, ReadsBuildIdOfThisProgram) {
  BuildIds ids;
  EXPECT_THAT(ids.Read(OwnProgram()), SizeIs(20));
  EXPECT_EQ(ids.Read(OwnProgram()), ids.Read(OwnProgram()));
  EXPECT_THAT(ids.notes(), IsEmpty());
}

TEST(BuildIdsTest, OtherFilesHaveNone) {
  const Directory directory;
  const std::string pipe = directory / "pipe";
  const std::string link = directory / "link";
  const std::string text = directory / "text";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // opening it would wait for a writer
  fs::create_symlink(OwnProgram(), link);
  std::ofstream(text) << "\177ELF and no more";
  BuildIds ids;
  for (const std::string& path :
       {std::string("/no/such/file"), std::string("/proc/self/maps"), std::string("/dev/zero"),
        std::string("[vdso]"), std::string("/"), pipe, link, text}) {
    EXPECT_THAT(ids.Read(path), IsEmpty()) << path;
  }
  EXPECT_THAT(ids.notes(), IsEmpty());
}

uint64_t InodeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_ino;
}

TEST(BuildIdsTest, FileWithoutBuildIdHasContentId) {
  const Directory directory;
  const std::string path = directory / "program";
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  std::ofstream(path).write(reinterpret_cast<const char*>(&header), sizeof header);
  BuildIds ids;
  EXPECT_THAT(ids.Read(path), IsEmpty());
  EXPECT_THAT(ids.ReadOrContentId(path, InodeOf(path)), SizeIs(12));
  EXPECT_EQ(ids.ReadOrContentId(OwnProgram(), InodeOf(OwnProgram())), ids.Read(OwnProgram()));
  EXPECT_THAT(ids.notes(), IsEmpty());
}

// A file that has taken the place of the one that ran.
TEST(BuildIdsTest, OtherFileAtThePathHasNoId) {
  BuildIds ids;
  EXPECT_THAT(ids.ReadOrContentId(OwnProgram(), InodeOf(OwnProgram()) + 1), IsEmpty());
}

// The kernel would ask its owner to give up a lease first, which takes up to 45 s.
TEST(BuildIdsTest, DoesNotWaitForFileWithLease) {
  const Directory directory;
  const std::string path = directory / "leased";
  fs::copy_file(OwnProgram(), path);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  (void)std::signal(SIGIO, SIG_IGN);
  if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases here";
  BuildIds ids;
  EXPECT_THAT(ids.Read(path), IsEmpty());
  close(fd);
  EXPECT_THAT(ids.Read(path), SizeIs(20));
}

// Returns the only child of this process.
pid_t Reader() {
  pid_t child = 0;
  std::ifstream("/proc/thread-self/children") >> child;
  return child;
}

TEST(BuildIdsTest, ReplacesReaderAFewTimes) {
  BuildIds ids;
  const std::string program = OwnProgram();
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(ids.Read(program), SizeIs(20)) << i;
    const pid_t reader = Reader();
    if (reader == 0) GTEST_SKIP() << "this kernel does not list children";
    ASSERT_EQ(kill(reader, SIGSEGV), 0);
    EXPECT_THAT(ids.Read(program), IsEmpty()) << i;
  }
  EXPECT_THAT(ids.Read(program), IsEmpty());
  const auto one = HasSubstr(program +
                             " is not known: the process that reads it did not answer; "
                             "it ended by signal 11");
  EXPECT_THAT(ids.notes(), ElementsAre(one, one, one, HasSubstr("no other is started")));
}

}  // namespace
}  // namespace xenoscope::sampler
