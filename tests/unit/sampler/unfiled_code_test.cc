// Code that is in no file of a process.
#include "sampler/unfiled_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

TEST(Vdso, IsAnElfFileWithTheClock) {
  const auto content = ReadVdso();
  if (content.empty()) GTEST_SKIP() << "no vDSO here";
  const auto elf = symbolizer::ElfFile::Open(content);
  ASSERT_TRUE(elf.ok()) << elf.status();
  const auto symbols = symbolizer::ReadElf(*elf, "[vdso]");
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  std::vector<std::string_view> names;
  for (const auto& symbol : symbols->table.functions) names.push_back(symbol.name);
  EXPECT_THAT(names, testing::Contains(testing::HasSubstr("clock_gettime")));
}

// A /proc and a /tmp of a test's own.
class PerfMapsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("unfiled_code.") + test->name());
    fs::remove_all(root_);
    fs::create_directories(proc_ = root_ / "proc");
    fs::create_directories(tmp_ = root_ / "tmp");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  fs::path OfProcess(int pid) {
    return proc_ / std::to_string(pid) / "root/tmp" / ("perf-" + std::to_string(pid) + ".map");
  }
  std::string Read(size_t most = kMostPerfMapBytes) {
    return ReadPerfMaps(proc_.string(), tmp_.string(), most);
  }

  fs::path root_, proc_, tmp_;
};

TEST_F(PerfMapsTest, ThoseOfProcessesAreFoundInTheirOwnTmp) {
  Write(OfProcess(12), "1000 20 run\n");
  Write(proc_ / "version", "Linux");
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n");
}

TEST_F(PerfMapsTest, ThoseOfProcessesThatHaveEndedAreFoundInTmp) {
  fs::create_directories(proc_ / "12");
  Write(tmp_ / "perf-12.map", "1000 20 not_its_own\n");  // of a process that is there
  Write(tmp_ / "perf-13.map", "2000 20 gone");
  Write(tmp_ / "perf-x.map", "3000 20 no_number\n");
  EXPECT_EQ(Read(), "# 13\n2000 20 gone\n");
}

TEST_F(PerfMapsTest, AMapCannotSpeakForAnotherProcess) {
  Write(OfProcess(12), "1000 20 run\n# 1\n1000 20 evil\n");
  EXPECT_EQ(Read(), "# 12\n1000 20 run\n1000 20 evil\n");
}

TEST_F(PerfMapsTest, WhatIsNoFileIsPassedOver) {
  fs::create_directories(OfProcess(12).parent_path());
  ASSERT_EQ(mkfifo(OfProcess(12).c_str(), 0600), 0);  // nobody writes: it would wait for ever
  Write(root_ / "secret", "1000 20 secret\n");
  fs::create_directories(OfProcess(13).parent_path());
  fs::create_symlink(root_ / "secret", OfProcess(13));
  fs::create_directories(OfProcess(14));
  EXPECT_EQ(Read(), "");
}

TEST_F(PerfMapsTest, TheyAreCutAtALineWhenTheyAreTooLong) {
  Write(OfProcess(12), "1000 20 first\n2000 20 second\n");
  EXPECT_EQ(Read(20), "# 12\n1000 20 first\n# cut\n");
  EXPECT_EQ(Read(5), "# cut\n");
}

}  // namespace
}  // namespace xenoscope::sampler
