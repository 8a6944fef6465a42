// Functions of JIT compilers, of processes that run and of those that end.
#include "sampler/perf/perf_map_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "tests/unit/sampler/memory_peak.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

// A /proc and a /tmp of a test's own.
class PerfMapsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / RootName();
    fs::remove_all(root_);
    fs::create_directories(proc_ = root_ / "proc");
    fs::create_directories(tmp_ = root_ / "tmp");
  }
  void TearDown() override { fs::remove_all(root_); }
  static std::string RootName() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string("perf_map_watch.") + test->name();
  }

  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Returns the text of /proc/PID/status for a process of that user.
  static std::string StatusOf(uid_t user, gid_t group) {
    return fmt::format("Name:\ta\nUid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{1}\t{1}\t{1}\t{1}\n", user,
                       group);
  }
  // Returns the file of a process that runs as this test does.
  fs::path OfProcess(int pid) {
    Write(proc_ / std::to_string(pid) / "status", StatusOf(geteuid(), getegid()));
    return proc_ / std::to_string(pid) / "root/tmp" / ("perf-" + std::to_string(pid) + ".map");
  }
  std::string Read(size_t most = kMaxPerfMapBytes) {
    return PerfMapWatch(proc_.string(), tmp_.string(), most).Read();
  }

  fs::path root_, proc_, tmp_;
};

TEST_F(PerfMapsTest, FindsMapInTmpOfProcess) {
  Write(OfProcess(12), "1000 20 run\n");
  Write(proc_ / "version", "Linux");
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n");
}

TEST_F(PerfMapsTest, FindsMapOfEndedProcessInTmp) {
  fs::create_directories(proc_ / "12");
  Write(tmp_ / "perf-12.map", "1000 20 not_its_own\n");  // a file of a running process
  Write(tmp_ / "perf-13.map", "2000 20 gone");
  Write(tmp_ / "perf-x.map", "3000 20 no_number\n");
  EXPECT_EQ(Read(), "# 13\n2000 20 gone\n");
}

TEST_F(PerfMapsTest, KeepsOnlyFunctions) {
  Write(
      OfProcess(12),
      "root:$6$salt$hash:19000:0:99999:7:::\n1000 20 run\n# 13\nkey = 1\n1000 run\n0x2000 0x8 f\n");
  Write(tmp_ / "perf-13.map", "daemon:*:19000:0:99999:7:::\n");
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n0x2000 0x8 f\n");
}

TEST_F(PerfMapsTest, JoinsLinesAcrossReads) {
  std::string text;
  for (size_t length = 1; text.size() < 300'000; length = length * 7 % 4999) {
    text += "1000 20 " + std::string(length, 'f') + "\n";
  }
  Write(OfProcess(12), text);
  EXPECT_EQ(Read(), "# 12\n" + text);
  const std::string too_long = "1000 20 " + std::string(200'000, 'f');
  Write(OfProcess(12), "1000 20 first\n" + too_long + "\n2000 20 last\n" + too_long);
  EXPECT_EQ(Read(), "# 12\n1000 20 first\n2000 20 last\n");
}

// Any user can make them long.
TEST_F(PerfMapsTest, KeepsFileInMemoryOnce) {
  if (!kHasMemoryPeak) GTEST_SKIP() << "the sanitizer keeps what is freed";
  constexpr size_t kFile = size_t{30} << 20;
  const fs::path path = OfProcess(12);
  fs::create_directories(path.parent_path());
  {
    std::ofstream out(path);
    const std::string line = "1000 20 function\n";
    for (size_t bytes = 0; bytes < kFile; bytes += line.size()) out << line;
  }
  BeginMemoryPeak();
  const uint64_t before = MemoryNow("self");
  EXPECT_GE(Read().size(), kFile);
  EXPECT_LT(MemoryPeak("self"), before + kFile + kFile / 2);
}

TEST_F(PerfMapsTest, IgnoresProcessWithTwoUserIds) {
  const std::string own = std::to_string(geteuid());
  const std::string good = StatusOf(geteuid(), getegid());
  struct Case {
    std::string status;
    std::string read;
  };
  for (const Case& c : {Case{good, "# 12\n1000 20 run\n"}, Case{"", ""}, Case{"Uid:\t0\n", ""},
                        Case{fmt::format("{0}Uid:\t1000\t{1}\t{1}\t{1}\n", good, own), ""},
                        Case{good + "Gid:\t1000\t42\t42\t42\n", ""}}) {
    Write(OfProcess(12), "1000 20 run\n");
    Write(proc_ / "12/status", c.status);
    EXPECT_EQ(Read(), c.read) << c.status;
  }
}

TEST_F(PerfMapsTest, ReadsOnlyFilesOfItsUserAsThatUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  constexpr uid_t kRoot = 0;
  constexpr uid_t kUser = 65534;
  struct Case {
    uid_t process, file;
    mode_t mode;
    bool taken;
  };
  for (const Case& c : {Case{kUser, kUser, 0600, true}, Case{kUser, kRoot, 0644, false},
                        Case{kRoot, kRoot, 0600, true}, Case{kRoot, kUser, 0644, false},
                        Case{kUser, kUser, 0000, false}}) {
    const fs::path path = OfProcess(12);
    fs::remove(path);
    Write(path, "1000 20 run\n");
    Write(proc_ / "12/status", StatusOf(c.process, c.process));
    ASSERT_EQ(chown(path.c_str(), c.file, c.file), 0);
    ASSERT_EQ(chmod(path.c_str(), c.mode), 0);
    EXPECT_EQ(Read(), c.taken ? "# 12\n1000 20 run\n" : "")
        << c.process << " " << c.file << " " << c.mode;
  }
}

TEST_F(PerfMapsTest, ReadsMapsOfEndedProcessesAsTheirOwners) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of others";
  for (const auto& [pid, mode] : {std::pair(12, 0600), std::pair(13, 0000)}) {
    const fs::path path = tmp_ / fmt::format("perf-{}.map", pid);
    Write(path, "1000 20 run\n");
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n");
}

TEST_F(PerfMapsTest, RefusesOtherNames) {
  Write(root_ / "secret", "1000 20 secret\n");
  fs::create_directories(OfProcess(12).parent_path());
  fs::create_hard_link(root_ / "secret", OfProcess(12));
  fs::create_hard_link(root_ / "secret", tmp_ / "perf-13.map");
  EXPECT_EQ(Read(), "");
}

TEST_F(PerfMapsTest, DoesNotFollowLinkAtTmp) {
  Write(root_ / "elsewhere/perf-12.map", "1000 20 secret\n");
  fs::create_directories(OfProcess(12).parent_path().parent_path());
  fs::create_directory_symlink(root_ / "elsewhere", OfProcess(12).parent_path());
  EXPECT_EQ(Read(), "");
}

TEST_F(PerfMapsTest, MapIsForItsOwnProcess) {
  Write(OfProcess(12), "1000 20 run\n# 1\n1000 20 evil\n");
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n1000 20 evil\n");
}

TEST_F(PerfMapsTest, SkipsOtherFileTypes) {
  fs::create_directories(OfProcess(12).parent_path());
  ASSERT_EQ(mkfifo(OfProcess(12).c_str(), 0600), 0);  // there is no writer: opening it would block
  Write(root_ / "secret", "1000 20 secret\n");
  fs::create_directories(OfProcess(13).parent_path());
  fs::create_symlink(root_ / "secret", OfProcess(13));
  fs::create_directories(OfProcess(14));
  EXPECT_EQ(Read(), "");
}

TEST_F(PerfMapsTest, TruncatesLongMapAtALine) {
  Write(OfProcess(12), "1000 20 first\n2000 20 second\n");
  EXPECT_EQ(Read(20), "# 12\n1000 20 first\n# cut\n");
  EXPECT_EQ(Read(5), "# cut\n");
}

// Processes that end while they are watched.
class PerfMapWatchTest : public PerfMapsTest {
 protected:
  // Adds lines to the file of a process.
  static void Append(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::app) << text;
  }
  // Ends the process; nobody sees its /tmp any more.
  void End(int pid) { fs::remove_all(proc_ / std::to_string(pid)); }
  static bool IsOpenHere(const fs::path& path) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      if (fs::read_symlink(entry.path(), ignored) == fs::canonical(path)) return true;
    }
    return false;
  }

  PerfMapWatch watch_{(fs::path(testing::TempDir()) / RootName() / "proc").string(),
                      (fs::path(testing::TempDir()) / RootName() / "tmp").string()};
};

TEST_F(PerfMapWatchTest, KeepsAllOfMapWhoseProcessEnds) {
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 run\n");
  watch_.Add(12);
  watch_.Look();
  Append(path, "2000 20 later\n");
  End(12);
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n2000 20 later\n");
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n2000 20 later\n");
}

TEST_F(PerfMapWatchTest, FindsMapThatComesLater) {
  const fs::path path = OfProcess(12);
  watch_.Add(12);
  watch_.Look();
  Write(path, "1000 20 run\n");
  watch_.Look();
  End(12);
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n");
}

TEST_F(PerfMapWatchTest, KeepsRemovedMapBeforeTheNextOne) {
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 first\n");
  watch_.Add(12);
  watch_.Look();
  fs::remove(path);
  watch_.Look();
  Write(path, "1000 20 second\n");
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 first\n# 12\n1000 20 second\n");
}

TEST_F(PerfMapWatchTest, ReadsMapOfRunningProcessOnce) {
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 run\n");
  watch_.Add(12);
  watch_.Look();
  Append(path, "2000 20 later\n");
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n2000 20 later\n");
}

TEST_F(PerfMapWatchTest, ReadsMapOfEndedProcessOnce) {
  OfProcess(12);
  fs::create_directory_symlink(root_, proc_ / "12/root");
  Write(tmp_ / "perf-12.map", "1000 20 run\n");
  watch_.Add(12);
  watch_.Look();
  End(12);
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n");
}

TEST_F(PerfMapWatchTest, RewrittenMapCountsAsItIsLast) {
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 compiled\n");
  watch_.Add(12);
  watch_.Look();
  Write(path, "1000 20 a\n");
  End(12);
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 a\n");
}

TEST_F(PerfMapWatchTest, EndedProcessesLeaveRoomForRunningOnes) {
  PerfMapWatch watch(proc_.string(), tmp_.string(), 60);
  Write(OfProcess(12), "1000 20 first\n2000 20 second\n");
  watch.Add(12);
  watch.Look();
  End(12);
  Write(OfProcess(13), "3000 20 third\n");
  EXPECT_EQ(watch.Read(), "# 12\n1000 20 first\n# 13\n3000 20 third\n# cut\n");
}

TEST_F(PerfMapWatchTest, ReadsNewWhileProcessesRun) {
  EXPECT_EQ(watch_.ReadNew(), std::nullopt);
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 run\n");
  Write(OfProcess(13), "1000 20 not_added\n");
  watch_.Add(12);
  EXPECT_EQ(watch_.ReadNew(), std::nullopt) << "no look has found it";
  watch_.Look();
  EXPECT_EQ(watch_.ReadNew(), "# 12\n1000 20 run\n");
  EXPECT_EQ(watch_.ReadNew(), std::nullopt);
  Append(path, "2000 20 later\n");
  std::optional<std::string> grown;
  while (!grown) grown = watch_.ReadNew();  // it rests for a thousand times as long as it took
  EXPECT_EQ(grown, "# 12\n1000 20 run\n2000 20 later\n");
}

TEST_F(PerfMapWatchTest, GivesWhatCameSinceTheLastTime) {
  const auto next = [this] {  // it gives no more than once a second
    std::optional<std::string> grown;
    while (!grown) {
      grown = watch_.ReadGrown();
      usleep(1000);
    }
    return *grown;
  };
  EXPECT_EQ(watch_.ReadGrown(), std::nullopt);
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 run\n2000 20 half");
  watch_.Add(12);
  watch_.Look();
  EXPECT_EQ(next(), "# 12\n1000 20 run\n");
  Append(path, " a line\nnonsense\n");
  EXPECT_EQ(next(), "# 12\n2000 20 half a line\n");
  Write(path, "1000 20 anew\n2000 20 as a JVM writes its file\n3000 20 run\n");
  EXPECT_EQ(next(), "# 12\n1000 20 anew\n2000 20 as a JVM writes its file\n3000 20 run\n");
  Append(path, "4000 20 last\n");
  End(12);
  watch_.Look();
  EXPECT_EQ(next(), "# 12\n4000 20 last\n");
}

TEST_F(PerfMapWatchTest, LooksOnThreadOfItsOwn) {
  const fs::path path = OfProcess(12);
  Write(path, "1000 20 run\n");
  watch_.Start();
  watch_.Add(12);
  while (!IsOpenHere(path)) usleep(1000);
  watch_.Stop();
  End(12);
  EXPECT_EQ(watch_.Read(), "# 12\n1000 20 run\n");
}

}  // namespace
}  // namespace xenoscope::sampler
