// The functions of processes' addresses, in the files that they map.
#include "symbolizer/process_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "symbolizer/domain_symbols.h"
#include "symbolizer/elf/build_id.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSubject = XENOSCOPE_TEST_SUBJECT;
constexpr AddressSpaceId kSpace{3};

// The subject, and one of its functions: its link address and, as the file is mapped where it is
// linked (the first part at 0x400000), its offset in the file.
class ProcessImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto content = FileContent::Open(kSubject);
    ASSERT_TRUE(content.ok()) << content.status();
    const auto elf = ElfFile::Open(content->bytes());
    build_id_ = elf->BuildId();
    ASSERT_FALSE(build_id_.empty());
    const auto symbols = ReadElf(*elf, "subject");
    for (const Symbol& symbol : symbols->table.functions) {
      if (symbol.name == "main") main_ = symbol.address;
    }
    ASSERT_NE(main_, 0);
  }
  // Maps the whole file at `where`, as a position-independent one would be.
  void Map(const std::string& path, const std::string& build_id, Address where) {
    const uint32_t file = images_.AddFile(kDom0, path, build_id);
    images_.SetMaps(kSpace, kDom0, 7, {{where, where + 0x100000, 0, file}});
  }
  Function At(Address address) { return images_.Find(kSpace, address); }

  static constexpr Address kLinked = 0x400000;
  ProcessImages images_;
  std::string build_id_;
  Address main_ = 0;
};

TEST_F(ProcessImagesTest, FindsFunctionAtAnyMapping) {
  Map(kSubject, build_id_, 0x7f0000000000);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "main");
  EXPECT_EQ(function.image, "symbolizer_subject");
  EXPECT_EQ(function.unresolved, "");
}

TEST_F(ProcessImagesTest, RefusesFileOfOtherBuild) {
  Map(kSubject, "0123", 0x7f0000000000);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "[no symbols]");
  EXPECT_EQ(function.image, "symbolizer_subject");
  EXPECT_THAT(function.unresolved, HasSubstr("not the build that was recorded"));
}

TEST_F(ProcessImagesTest, RefusesFileOfUnknownBuild) {
  Map(kSubject, "", 0x7f0000000000);
  EXPECT_THAT(At(main_ - kLinked + 0x7f0000000000).unresolved, HasSubstr("has no build-id"));
}

// Go's linker makes no build-id.
TEST_F(ProcessImagesTest, KnowsFileWithoutBuildIdByItsContent) {
  auto content = FileContent::Open(kSubject);
  ASSERT_TRUE(content.ok()) << content.status();
  std::string file(AsText(content->bytes()));
  const size_t note = file.find(std::string("\3\0\0\0GNU\0", 8));
  ASSERT_NE(note, std::string::npos);
  file[note] = 99;  // another type of note
  const std::string path = testing::TempDir() + "/without_build_id";
  std::ofstream(path, std::ios::binary) << file;
  Map(path, ContentIdOf(AsBytes(file)), 0x7f0000000000);
  EXPECT_EQ(At(main_ - kLinked + 0x7f0000000000).name, "main");
  std::ofstream(path, std::ios::binary | std::ios::app) << "changed";
  ProcessImages later;
  later.SetMaps(kSpace, kDom0, 7,
                {{0x1000, 0x100000, 0, later.AddFile(kDom0, path, ContentIdOf(AsBytes(file)))}});
  EXPECT_THAT(later.Find(kSpace, 0x1001).unresolved, HasSubstr("not the build that was recorded"));
  std::filesystem::remove(path);
}

TEST_F(ProcessImagesTest, FindsFileByBuildId) {
  Map("/no/such/subject", build_id_, 0x7f0000000000);
  images_.AddSubstitute(build_id_, kSubject);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "main");
  EXPECT_EQ(function.image, "subject");
}

TEST_F(ProcessImagesTest, ReportsMissingFile) {
  Map("/no/such/subject", build_id_, 0x7f0000000000);
  EXPECT_THAT(At(0x7f0000000001).unresolved, HasSubstr("/no/such/subject"));
  EXPECT_EQ(At(0x7f0000000001).image, "subject");
}

TEST_F(ProcessImagesTest, LaterOfOverlappingMapsWins) {
  const uint32_t first = images_.AddFile(kDom0, "/no/such/first", "01");
  const uint32_t second = images_.AddFile(kDom0, "[vdso]", "");
  images_.SetMaps(kSpace, kDom0, 7, {{0x1000, 0x5000, 0, first}, {0x2000, 0x3000, 0, second}});
  EXPECT_EQ(At(0x1fff).image, "first");
  EXPECT_EQ(At(0x2000).image, "[vdso]");
  EXPECT_EQ(At(0x3000).image, "first");
  EXPECT_EQ(At(0x5000).name, "[no map]");
  EXPECT_EQ(images_.Find({9}, 0x1000).name, "[no map]");
}

TEST_F(ProcessImagesTest, ProcessWithoutMapsUsesDomainSymbols) {
  DomainSymbols symbols;
  const uint32_t file = symbols.processes().AddFile(kDom0, kSubject, build_id_);
  symbols.processes().SetMaps(kSpace, kDom0, 7, {{kLinked, kLinked + 0x100000, 0, file}});
  EXPECT_EQ(symbols.Describe(symbols.ResolveInProcess(kDom0, kSpace, main_)).name, "main");
  const Function& other = symbols.Describe(symbols.ResolveInProcess(kDom0, {4}, main_));
  EXPECT_THAT(other.unresolved, HasSubstr("no symbols for d0's user mode"));
}

// A process that runs the output of a JIT compiler, and calls the vDSO.
class JitAndVdsoTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPid = 7;
  static constexpr Address kMade = 0x7f0000000000;
  static constexpr Address kVdsoAt = 0x7fff00000000;
  void SetUp() override {
    const uint32_t anonymous = images_.AddFile(kDom0, "[anonymous]", "");
    const uint32_t vdso = images_.AddFile(kDom0, "[vdso]", "");
    images_.SetMaps(kSpace, kDom0, kPid,
                    {{kMade, kMade + 0x1000, 0, anonymous},
                     {kVdsoAt, kVdsoAt + 0x100000, 0, vdso},
                     {0xf7000000, 0xf7100000, 0, vdso}});
  }
  Function At(Address address) { return images_.Find(kSpace, address); }
  ProcessImages images_;
};

TEST_F(JitAndVdsoTest, FindsFunctionOfPerfMap) {
  images_.SetPerfMaps(kDom0, PerfMaps::Read("# 7\n7f0000000100 40 run server.js:12\n"));
  const Function function = At(kMade + 0x120);
  EXPECT_EQ(function.image, "[jit]");
  EXPECT_EQ(function.name, "run server.js:12");
  EXPECT_EQ(function.unresolved, "");
  EXPECT_FALSE(images_.LocationOf(kSpace, kMade + 0x120).has_value());
}

TEST_F(JitAndVdsoTest, PerfMapIsOfOneProcessOfOneDomain) {
  images_.SetPerfMaps(kDom0, PerfMaps::Read("# 8\n7f0000000100 40 run\n"));
  images_.SetPerfMaps(DomainId{3}, PerfMaps::Read("# 7\n7f0000000100 40 run\n"));
  EXPECT_EQ(At(kMade + 0x120).name, "[no symbols]");
  EXPECT_THAT(At(kMade + 0x120).unresolved, HasSubstr("/tmp/perf-PID.map"));
}

TEST_F(JitAndVdsoTest, FindsFunctionOutsideMappedFiles) {
  images_.SetPerfMaps(kDom0, PerfMaps::Read("# 7\n555000 40 late\n"));
  EXPECT_EQ(At(0x555010).name, "late");
}

TEST_F(JitAndVdsoTest, VdsoIsOfKernelAnd64BitProcesses) {
  EXPECT_THAT(At(kVdsoAt).unresolved, HasSubstr("the recording does not contain it"));
  auto content = FileContent::Open(kSubject);
  ASSERT_TRUE(content.ok());
  const auto elf = ElfFile::Open(content->bytes());
  const auto symbols = ReadElf(*elf, "subject");
  Address main = 0;
  for (const Symbol& symbol : symbols->table.functions) {
    if (symbol.name == "main") main = symbol.address - 0x400000;
  }
  ASSERT_TRUE(images_.SetVdso(kDom0, *std::move(content)).ok());
  EXPECT_EQ(At(kVdsoAt + main).name, "main");
  EXPECT_EQ(At(kVdsoAt + main).image, "[vdso]");
  EXPECT_EQ(At(0xf7000000 + main).name, "[no symbols]");  // of a 32-bit process
}

TEST_F(JitAndVdsoTest, RefusesInvalidVdso) {
  EXPECT_FALSE(images_.SetVdso(kDom0, FileContent::FromString("no ELF file")).ok());
}

}  // namespace
}  // namespace xenoscope::symbolizer
