// Addresses of processes to functions of the files that they map.
#include "symbolizer/process_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "symbolizer/domain_symbols.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSubject = XENOSCOPE_TEST_SUBJECT;
constexpr ProcessSpace kSpace{3};

// The subject, and one of its functions: where it is linked, and, its file being mapped as it is
// linked (the first part at 0x400000), where it is in the file.
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
  // The whole file at `where`, as a position-independent one would be.
  void Map(const std::string& path, const std::string& build_id, Address where) {
    const uint32_t file = images_.AddFile(kDom0, path, build_id);
    images_.SetMaps(kSpace, {{where, where + 0x100000, 0, file}});
  }
  Function At(Address address) { return images_.Find(kSpace, address); }

  static constexpr Address kLinked = 0x400000;
  ProcessImages images_;
  std::string build_id_;
  Address main_ = 0;
};

TEST_F(ProcessImagesTest, AFunctionIsFoundWhereverItsFileIsMapped) {
  Map(kSubject, build_id_, 0x7f0000000000);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "main");
  EXPECT_EQ(function.image, "symbolizer_subject");
  EXPECT_EQ(function.unresolved, "");
}

TEST_F(ProcessImagesTest, AFileOfAnotherBuildIsNotUsed) {
  Map(kSubject, "0123", 0x7f0000000000);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "[no symbols]");
  EXPECT_EQ(function.image, "symbolizer_subject");
  EXPECT_THAT(function.unresolved, HasSubstr("another build"));
}

TEST_F(ProcessImagesTest, AFileOfUnknownBuildIsNotUsed) {
  Map(kSubject, "", 0x7f0000000000);
  EXPECT_THAT(At(main_ - kLinked + 0x7f0000000000).unresolved, HasSubstr("without a build-id"));
}

TEST_F(ProcessImagesTest, AFileThatIsElsewhereHasItsStandIn) {
  Map("/no/such/subject", build_id_, 0x7f0000000000);
  images_.AddStandIn(build_id_, kSubject);
  const Function function = At(main_ - kLinked + 0x7f0000000000);
  EXPECT_EQ(function.name, "main");
  EXPECT_EQ(function.image, "subject");
}

TEST_F(ProcessImagesTest, AFileThatIsNowhereSaysSo) {
  Map("/no/such/subject", build_id_, 0x7f0000000000);
  EXPECT_THAT(At(0x7f0000000001).unresolved, HasSubstr("/no/such/subject"));
  EXPECT_EQ(At(0x7f0000000001).image, "subject");
}

TEST_F(ProcessImagesTest, OfMapsThatOverlapTheLaterCounts) {
  const uint32_t first = images_.AddFile(kDom0, "/no/such/first", "01");
  const uint32_t second = images_.AddFile(kDom0, "[vdso]", "");
  images_.SetMaps(kSpace, {{0x1000, 0x5000, 0, first}, {0x2000, 0x3000, 0, second}});
  EXPECT_EQ(At(0x1fff).image, "first");
  EXPECT_EQ(At(0x2000).image, "[vdso]");
  EXPECT_EQ(At(0x3000).image, "first");
  EXPECT_EQ(At(0x5000).name, "[no map]");
  EXPECT_EQ(images_.Find({9}, 0x1000).name, "[no map]");
}

TEST_F(ProcessImagesTest, AProcessWithoutMapsIsItsDomains) {
  DomainSymbols symbols;
  const uint32_t file = symbols.processes().AddFile(kDom0, kSubject, build_id_);
  symbols.processes().SetMaps(kSpace, {{kLinked, kLinked + 0x100000, 0, file}});
  EXPECT_EQ(symbols.Describe(symbols.ResolveInProcess(kDom0, kSpace, main_)).name, "main");
  const Function& other = symbols.Describe(symbols.ResolveInProcess(kDom0, {4}, main_));
  EXPECT_THAT(other.unresolved, HasSubstr("no symbols for d0's user mode"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
