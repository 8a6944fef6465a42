// /proc/PID/maps, and this process among the running ones.
#include "sampler/running_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace xenoscope::sampler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RunningProcessesTest, KeepsExecutableMaps) {
  const auto maps = ReadMaps(
      "00400000-00401000 r--p 00000000 fe:00 1234       /usr/bin/cat\n"
      "00401000-00405000 r-xp 00001000 fe:00 1234       /usr/bin/cat with blanks\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0\n"
      "7fff00000000-7fff00002000 r-xp 00000000 00:00 0  [vdso]");
  ASSERT_THAT(maps, SizeIs(3));
  EXPECT_EQ(maps[0].begin, 0x401000);
  EXPECT_EQ(maps[0].end, 0x405000);
  EXPECT_EQ(maps[0].offset, 0x1000);
  EXPECT_EQ(maps[0].inode, 1234);
  EXPECT_EQ(maps[0].path, "/usr/bin/cat with blanks");
  EXPECT_EQ(maps[1].path, "[anonymous]");
  EXPECT_EQ(maps[2].path, "[vdso]");
}

TEST(RunningProcessesTest, FindsTheCgroupOfEitherVersion) {
  EXPECT_EQ(CgroupOf("0::/system.slice/nginx.service"), "/system.slice/nginx.service");
  EXPECT_EQ(CgroupOf("12:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n0::/\n"), "/docker/ab");
  EXPECT_EQ(CgroupOf("0::/\n"), "/");
  EXPECT_EQ(CgroupOf("moon\n:\n"), "");
  EXPECT_EQ(CgroupOf(""), "");
}

TEST(RunningProcessesTest, FindsTheThreadsOfThisProcess) {
  const auto threads = ReadRunningThreads();
  const auto self =
      std::ranges::find(threads, static_cast<uint32_t>(getpid()), &RunningThread::tid);
  ASSERT_NE(self, threads.end());
  EXPECT_EQ(self->pid, self->tid);
  EXPECT_EQ(self->name, "sampler_test");
}

TEST(RunningProcessesTest, SkipsMalformedMaps) {
  EXPECT_THAT(ReadMaps(""), IsEmpty());
  EXPECT_THAT(ReadMaps("\n\n"), IsEmpty());
  EXPECT_THAT(ReadMaps("moon"), IsEmpty());
  EXPECT_THAT(ReadMaps("5000-4000 r-xp 0 fe:00 1 /backwards\n"), IsEmpty());
  EXPECT_THAT(ReadMaps("4000-5000 r-xp zz fe:00 1 /offset\n"), IsEmpty());
  EXPECT_THAT(ReadMaps("4000-5000 r-xp 0 fe:00 moon /inode\n"), IsEmpty());
  EXPECT_THAT(ReadMaps("4000 r-xp 0 fe:00 1 /no-range\n4000-5000 x\n"), IsEmpty());
}

TEST(RunningProcessesTest, ListsThisProcess) {
  const auto processes = ReadRunningProcesses();
  const auto self =
      std::ranges::find(processes, static_cast<uint32_t>(getpid()), &RunningProcess::pid);
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->name, "sampler_test");
  EXPECT_TRUE(std::ranges::any_of(
      self->maps, [](const ExecutableMap& map) { return map.path.ends_with("/sampler_test"); }));
}

// When a process ends while it is read, reading gives an error, as it does for a directory.
TEST(RunningProcessesTest, UnreadableMapsAreEmpty) {
  const std::filesystem::path proc = std::filesystem::path(testing::TempDir()) / "ending_process";
  std::filesystem::create_directories(proc / "123" / "maps");
  std::ofstream(proc / "123" / "comm") << "ending\n";
  const auto processes = ReadRunningProcesses(proc.string());
  std::filesystem::remove_all(proc);
  ASSERT_THAT(processes, SizeIs(1));
  EXPECT_EQ(processes[0].name, "ending");
  EXPECT_THAT(processes[0].maps, IsEmpty());
}

TEST(RunningProcessesTest, NoProcessesWithoutProc) {
  EXPECT_THAT(ReadRunningProcesses("/no/such/proc"), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::sampler
