// Debug information that was read is not read again, and no other file's is used for it.
#include "symbolizer/index_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/frame_table.h"

namespace xenoscope::symbolizer {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::SizeIs;

class IndexCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("index_cache.") + info->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
    subject_ = root_ / "subject";
    fs::copy_file(XENOSCOPE_TEST_SUBJECT, subject_);
    cache_ = std::make_shared<IndexCache>((root_ / "cache").string());
    const FileContent content = FileContent::Open(subject_.string()).value();
    const ElfFile elf = ElfFile::Open(content.bytes()).value();
    const ElfSymbols symbols = ReadElf(elf, "subject").value();
    for (const Symbol& symbol : symbols.table.functions) {
      for (Address at = symbol.address; at <= symbol.address + symbol.size; ++at) {
        addresses_.push_back(at);
      }
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  std::unique_ptr<DebugInfo> Open(bool with_cache) const {
    auto content = std::make_shared<FileContent>(FileContent::Open(subject_.string()).value());
    auto opened = DebugInfo::Open(std::move(content), FileFinder(), {subject_.string()},
                                  with_cache ? cache_ : nullptr);
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  // Returns the frames of all addresses, a line each.
  std::vector<std::string> Answers(DebugInfo& debug_info) const {
    std::vector<std::string> answers;
    for (const Address address : addresses_) {
      std::string& answer = answers.emplace_back();
      for (const CodeFrame& frame : debug_info.FramesAt(address)) {
        answer += std::string(frame.function) + " " + std::string(frame.file) + ":" +
                  std::to_string(frame.line) + "\n";
      }
    }
    return answers;
  }
  std::vector<fs::path> Stored() const {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(root_ / "cache", none)) {
      files.push_back(entry.path());
    }
    return files;
  }
  // Makes the file's debug information useless, with its identity unchanged.
  void RuinDebugInfo() const {
    struct stat before {};
    ASSERT_EQ(stat(subject_.c_str(), &before), 0);
    {
      const FileContent content = FileContent::Open(subject_.string()).value();
      const ElfFile elf = ElfFile::Open(content.bytes()).value();
      std::fstream file(subject_, std::ios::in | std::ios::out | std::ios::binary);
      for (const char* name : {".debug_info", ".debug_line", ".debug_abbrev"}) {
        const Bytes section = elf.Section(name);
        file.seekp(section.data() - content.bytes().data());
        file << std::string(section.size(), '\xff');
      }
    }
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, subject_.c_str(), times, 0), 0);
  }

  fs::path root_;
  fs::path subject_;
  std::shared_ptr<IndexCache> cache_;
  std::vector<Address> addresses_;
};

TEST_F(IndexCacheTest, SecondLoadDoesNotReadDebugInfo) {
  const auto expected = Answers(*Open(false));
  EXPECT_THAT(Stored(), IsEmpty());
  EXPECT_EQ(Answers(*Open(true)), expected);
  EXPECT_THAT(Stored(), SizeIs(1));
  RuinDebugInfo();
  EXPECT_NE(Answers(*Open(false)), expected);
  EXPECT_EQ(Answers(*Open(true)), expected);
}

TEST_F(IndexCacheTest, AddsUnitsWhenRead) {
  const auto expected = Answers(*Open(false));
  const auto in_a_unit =
      std::ranges::find_if(expected, [](const auto& text) { return !text.empty(); });
  ASSERT_NE(in_a_unit, expected.end());
  {
    const auto first = Open(true);
    first->FramesAt(addresses_[static_cast<size_t>(in_a_unit - expected.begin())]);
  }
  ASSERT_THAT(Stored(), SizeIs(1));
  EXPECT_EQ(Answers(*Open(true)), expected);
  EXPECT_THAT(Stored(), SizeIs(1));
  RuinDebugInfo();
  EXPECT_EQ(Answers(*Open(true)), expected);
}

TEST_F(IndexCacheTest, IgnoresCacheOfChangedFile) {
  Answers(*Open(true));
  const auto later = fs::last_write_time(subject_) + std::chrono::seconds(1);
  RuinDebugInfo();
  fs::last_write_time(subject_, later);
  const auto changed = Open(true);
  const auto without = Open(false);
  ASSERT_EQ(changed == nullptr, without == nullptr);
  if (changed != nullptr) {
    EXPECT_EQ(Answers(*changed), Answers(*without));
  }
}

TEST_F(IndexCacheTest, ReplacesDamagedCache) {
  const auto expected = Answers(*Open(true));
  const fs::path stored = Stored().at(0);
  const auto size = fs::file_size(stored);
  for (const uintmax_t at : {uintmax_t{0}, uintmax_t{9}, uintmax_t{60}, size / 2, size - 1}) {
    {
      std::fstream file(stored, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 0x5a));
    }
    EXPECT_EQ(Answers(*Open(true)), expected) << "byte " << at;
  }
  fs::resize_file(stored, size / 3);
  EXPECT_EQ(Answers(*Open(true)), expected);
  RuinDebugInfo();
  EXPECT_EQ(Answers(*Open(true)), expected) << "it was not made anew";
}

TEST_F(IndexCacheTest, WorksWithoutCacheDirectory) {
  const auto expected = Answers(*Open(false));
  std::ofstream(root_ / "cache") << "a file, no directory";
  EXPECT_EQ(Answers(*Open(true)), expected);
}

TEST_F(IndexCacheTest, EvictsLeastRecentlyUsed) {
  const IndexCache cache((root_ / "small").string(), 3000);
  const std::string bytes(1000, 'x');
  const auto file = [](uint64_t inode) { return FileIdentity{1, inode, 2, 3}; };
  const auto age = [&](const char* build_id, int hours) {
    for (const auto& entry : fs::directory_iterator(root_ / "small")) {
      if (!entry.path().filename().string().starts_with(build_id)) continue;
      fs::last_write_time(entry.path(),
                          fs::file_time_type::clock::now() - std::chrono::hours(hours));
    }
  };
  cache.Store("aa", file(1), bytes);
  cache.Store("bb", file(2), bytes);
  cache.Store("cc", file(3), bytes);
  age("aa", 3);
  age("bb", 2);
  age("cc", 1);
  EXPECT_TRUE(cache.Find("aa", file(1)));
  cache.Store("dd", file(4), bytes);
  EXPECT_TRUE(cache.Find("aa", file(1)));
  EXPECT_FALSE(cache.Find("bb", file(2))) << "it was not used for the longest time";
  EXPECT_TRUE(cache.Find("cc", file(3)));
  EXPECT_TRUE(cache.Find("dd", file(4)));
  EXPECT_FALSE(cache.Find("dd", file(5))) << "another file with the same build-id";
  cache.Store("ee", file(6), std::string(5000, 'x'));
  EXPECT_FALSE(cache.Find("ee", file(6))) << "larger than all of it";
}

TEST(FrameTable, RoundTrips) {
  FrameTableWriter writer;
  writer.Add(0x1000, std::vector<CodeFrame>{{"inner", "a.h", 3}, {"outer", "a.c", 7}});
  writer.Add(0x1010, std::vector<CodeFrame>{{"outer", "a.c", 8}});
  writer.Add(0x2000, FrameTable::kUnread);
  writer.Add(0x3000, FrameTable::kNoFrame);
  const std::string bytes = std::move(writer).Finish();
  const auto table = FrameTable::Open(AsBytes(bytes));
  ASSERT_TRUE(table.ok()) << table.status();
  std::vector<CodeFrame> frames;
  EXPECT_TRUE(table->Find(0xfff, frames));
  EXPECT_THAT(frames, IsEmpty());
  ASSERT_TRUE(table->Find(0x100f, frames));
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_EQ(frames[0].function, "inner");
  EXPECT_EQ(frames[1].file, "a.c");
  EXPECT_EQ(frames[1].line, 7);
  ASSERT_TRUE(table->Find(0x1010, frames));
  EXPECT_THAT(frames, SizeIs(1));
  EXPECT_FALSE(table->Find(0x2000, frames));
  EXPECT_TRUE(table->Find(0x3000, frames));
  EXPECT_THAT(table->StartsIn(0x1004, 0x2001), testing::ElementsAre(0x1004, 0x1010, 0x2000));
  EXPECT_FALSE(FrameTable().Knows(0x1000));
}

}  // namespace
}  // namespace xenoscope::symbolizer
