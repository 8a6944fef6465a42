// The sources of symbols of stripped files; and nothing leads out of a root.
#include "symbolizer/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "symbolizer/disassembly.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/listing.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSubject = XENOSCOPE_TEST_SUBJECT;

// A directory of the test's own, and commands that run in it.
class ImageFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("image_file.") + info->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "bin");
    fs::copy_file(kSubject, root_ / "bin/subject");
  }
  void TearDown() override { fs::remove_all(root_); }
  bool Run(const std::string& command) const {
    return std::system(("cd " + root_.string() + " && { " + command + "; } 2>/dev/null").c_str()) ==
           0;
  }
  absl::StatusOr<std::unique_ptr<ImageFile>> Open(const std::string& path) const {
    const FileFinder finder(root_.string());
    XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, finder.Open(path));
    return ImageFile::Open(std::move(content), path, finder);
  }
  // Returns whether the function that only a local symbol names is known.
  static bool KnowsLocal(ImageFile& image) {
    const auto symbols = image.ReadSymbols("subject");
    if (!symbols.ok()) return false;
    return std::any_of(
        symbols->table.functions.begin(), symbols->table.functions.end(),
        [](const Symbol& symbol) { return symbol.name.find("Local") != std::string_view::npos; });
  }

  fs::path root_;
};

TEST_F(ImageFileTest, HasItsOwnSymbolsAndLines) {
  auto image = Open("/bin/subject");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(KnowsLocal(**image));
  ASSERT_NE((*image)->debug_info(), nullptr);
  EXPECT_EQ((*image)->debug_path(), "/bin/subject");
}

TEST_F(ImageFileTest, FollowsDebugLinkOfStrippedFile) {
  if (!Run("mkdir bin/.debug && cd bin && objcopy --only-keep-debug subject .debug/s.debug && "
           "objcopy --strip-all --add-gnu-debuglink=.debug/s.debug subject")) {
    GTEST_SKIP() << "no objcopy here";
  }
  auto image = Open("/bin/subject");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(KnowsLocal(**image));
  ASSERT_NE((*image)->debug_info(), nullptr);
  EXPECT_EQ((*image)->debug_path(), "/bin/.debug/s.debug");

  // A debug file of another build is not used.
  ASSERT_TRUE(Run("echo >> bin/.debug/s.debug"));
  image = Open("/bin/subject");
  ASSERT_TRUE(image.ok());
  EXPECT_FALSE(KnowsLocal(**image));
  EXPECT_EQ((*image)->debug_info(), nullptr);
}

TEST_F(ImageFileTest, FollowsBuildIdOfStrippedFile) {
  const auto whole = Open("/bin/subject");
  ASSERT_TRUE(whole.ok());
  const std::string id = (*whole)->elf().BuildId();
  ASSERT_GT(id.size(), 2U);
  const std::string directory = "usr/lib/debug/.build-id/" + id.substr(0, 2);
  if (!Run("mkdir -p " + directory + " && objcopy --only-keep-debug bin/subject " + directory +
           "/" + id.substr(2) + ".debug && objcopy --strip-all bin/subject")) {
    GTEST_SKIP() << "no objcopy here";
  }
  auto image = Open("/bin/subject");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(KnowsLocal(**image));
  EXPECT_NE((*image)->debug_info(), nullptr);
}

TEST_F(ImageFileTest, ReadsMiniDebugInfo) {
  if (!Run("objcopy --only-keep-debug bin/subject small && objcopy -g small && xz small && "
           "objcopy --strip-all bin/subject && "
           "objcopy --add-section .gnu_debugdata=small.xz bin/subject")) {
    GTEST_SKIP() << "no objcopy or xz here";
  }
  auto image = Open("/bin/subject");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_TRUE(KnowsLocal(**image));
}

TEST_F(ImageFileTest, DoesNotLeaveTheRoot) {
  const FileFinder finder(root_.string());
  std::ofstream(root_ / "etc") << "inside\n";
  const fs::path outside = root_.string() + ".outside";
  std::ofstream(outside) << "outside\n";
  // These are a link to a file of this machine, a link that climbs, and a link to the root's own
  // file.
  fs::create_symlink(outside, root_ / "absolute");
  fs::create_symlink("../" + outside.filename().string(), root_ / "climbing");
  fs::create_symlink("/etc", root_ / "inside");
  EXPECT_FALSE(finder.Open("/absolute").ok());
  EXPECT_FALSE(finder.Open("/climbing").ok());
  EXPECT_FALSE(finder.Open("/../" + outside.filename().string()).ok());
  EXPECT_FALSE(finder.Open("../" + outside.filename().string()).ok());
  const auto inside = finder.Open("/inside");
  ASSERT_TRUE(inside.ok()) << inside.status();
  EXPECT_EQ(AsText(inside->bytes()), "inside\n");
  EXPECT_TRUE(finder.Open("/bin/../../../etc").ok());  // as in a machine whose root it is
  fs::remove(outside);
}

TEST_F(ImageFileTest, DoesNotWaitForPipe) {
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(FileFinder(root_.string()).Open("/pipe").ok());
}

// Returns samples of main, one at each of its instructions.
class ListingTest : public ImageFileTest {
 protected:
  void SetUp() override {
    ImageFileTest::SetUp();
    image_ = *Open("/bin/subject");
    const auto symbols = image_->ReadSymbols("subject");
    const SymbolIndex index = *SymbolIndex::Build(symbols->table);
    for (uint32_t symbol = 0; symbol < index.size(); ++symbol) {
      if (index.Name(symbol) != "main") continue;
      function_ = {image_.get(), index.Start(symbol), index.Start(symbol), index.End(symbol)};
    }
    ASSERT_NE(function_.function_begin, 0U);
    const Bytes code =
        image_->CodeAt(function_.function_begin, function_.function_end - function_.function_begin);
    const Disassembler disassembler = Disassembler::Load().value();
    for (const Instruction& instruction :
         disassembler.Disassemble(code, function_.function_begin)) {
      samples_.push_back({instruction.address, {1.0}});
    }
  }

  std::unique_ptr<ImageFile> image_;
  CodeLocation function_;
  std::vector<SampledAddress> samples_;
};

double Sum(const Listing& listing) {
  double sum = 0;
  for (const ListedLine& line : listing.lines) {
    for (const double samples : line.samples) sum += samples;
  }
  return sum;
}

TEST_F(ListingTest, EachSampleIsInOneSourceLine) {
  const auto listing = ListSource(function_, samples_, SourceFinder({"/"}));
  if (!listing.ok()) GTEST_SKIP() << "the source is not where it was compiled";
  EXPECT_THAT(listing->title, HasSubstr("subject.cc"));
  EXPECT_EQ(Sum(*listing), static_cast<double>(samples_.size()));
  EXPECT_THAT(listing->lines, Contains(Field(&ListedLine::code, HasSubstr("chain.Step("))));
  // Inlined code counts for the line that calls it.
  EXPECT_THAT(listing->lines, Not(Contains(Field(&ListedLine::code, HasSubstr("x ^= x >> 33")))));
}

TEST_F(ListingTest, NoSourceListingWithoutSources) {
  EXPECT_FALSE(ListSource(function_, samples_, SourceFinder({root_.string()})).ok());
}

TEST_F(ListingTest, EachSampleIsInOneInstruction) {
  const Listing listing = ListInstructions(function_, samples_).value();
  EXPECT_EQ(listing.lines.size(), samples_.size());
  EXPECT_EQ(Sum(listing), static_cast<double>(samples_.size()));
  EXPECT_EQ(listing.lines.front().place, "+0x0");
  EXPECT_THAT(listing.lines, Contains(Field(&ListedLine::code, HasSubstr("ret"))));
}

TEST_F(ListingTest, ListsAddressesWithoutCode) {
  function_.file = nullptr;
  const Listing listing = ListInstructions(function_, {samples_.data(), 2}).value();
  ASSERT_EQ(listing.lines.size(), 2U);
  EXPECT_EQ(listing.lines[0].place, "+0x0");
  EXPECT_THAT(listing.lines[0].code, IsEmpty());
}

}  // namespace
}  // namespace xenoscope::symbolizer
