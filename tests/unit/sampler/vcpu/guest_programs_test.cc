// Files of a guest's programs, found by their headers in simulated memory.
#include "sampler/vcpu/guest_programs.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "recording/process_reader.h"
#include "tests/unit/sampler/fake_memory.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DomainId kGuest{3};
constexpr Address kProgram = 0x5555'5555'4000;
constexpr Address kLibrary = 0x7fff'f7dd'0000;

// A file in memory: headers and build-id in the first page, code from `code` on.
struct FakeFile {
  Address at = 0;
  uint64_t code = 0x2000;
  uint64_t code_size = 0x3000;
  std::vector<uint8_t> build_id = {1, 2, 3, 4, 5, 6, 7, 8};
  Address linked_at = 0;
  bool headers_are_code = false;
  uint16_t machine = EM_X86_64;
  uint32_t id_size = 8;
};

class GuestProgramsTest : public ::testing::Test {
 protected:
  static VcpuContext At(Address address, uint64_t root = FakeRam::kRoot) {
    VcpuContext context;
    context.address = address;
    context.page_tables = root << 12;
    return context;
  }

  void Load(const FakeFile& file) {
    std::vector<std::byte> page(kFrameSize);
    const auto put = [&page](size_t at, const auto& value) {
      std::memcpy(page.data() + at, &value, sizeof value);
    };
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = file.machine;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    put(0, header);
    const uint64_t linked = file.linked_at;
    const auto part = [&](size_t number, uint32_t type, uint32_t flags, uint64_t offset,
                          uint64_t size) {
      Elf64_Phdr of{};
      of.p_type = type;
      of.p_flags = flags;
      of.p_offset = offset;
      of.p_vaddr = linked + offset;
      of.p_filesz = of.p_memsz = size;
      put(sizeof header + number * sizeof of, of);
    };
    constexpr uint64_t kNotes = 0x204;
    part(0, PT_LOAD, file.headers_are_code ? PF_R | PF_X : PF_R, 0,
         file.headers_are_code ? file.code + file.code_size : 0x1000);
    part(1, PT_NOTE, PF_R, kNotes, 0x50);
    part(2, PT_LOAD, PF_R | PF_X, file.code, file.code_size);
    // Another note, then the build-id.
    put(kNotes, Elf64_Nhdr{4, 5, NT_GNU_ABI_TAG});
    std::memcpy(page.data() + kNotes + 12, "GNU", 4);
    const size_t note = kNotes + 12 + 4 + 8;
    put(note, Elf64_Nhdr{4, file.id_size, NT_GNU_BUILD_ID});
    std::memcpy(page.data() + note + 12, "GNU", 4);
    std::memcpy(page.data() + note + 16, file.build_id.data(), file.build_id.size());
    for (size_t at = 0; at < page.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, page.data() + at, 8);
      ram_.Write(file.at + at, word);
    }
    if (file.headers_are_code) ram_.Code(file.at);
    for (uint64_t at = file.code; at < file.code + file.code_size; at += kFrameSize) {
      ram_.Code(file.at + at);
    }
  }

  uint16_t Find(const VcpuContext& context, const std::vector<uint64_t>& words = {},
                bool search = true) {
    recording::ProcessChunk chunk;
    const uint16_t space = programs_.Find(kGuest, context, words, Tsc{77}, search, chunk);
    Read(chunk);
    return space;
  }
  // Sets found_ to what is in the chunk.
  void Read(const recording::ProcessChunk& chunk) {
    found_.clear();
    const std::string path = testing::TempDir() + "/guest_programs." + std::to_string(getpid());
    auto writer = recording::SampleWriter::Create(path);
    writer->Append(kGuest, chunk);
    ASSERT_TRUE(writer->Flush().ok());
    const auto file = MappedFile::Open(path);
    auto reader = recording::ProcessReader::Open(file->bytes());
    while (const auto record = reader->Next()) {
      EXPECT_EQ(record->type, recording::ProcessEntryType::kSpaceMap);
      EXPECT_EQ(record->when, Tsc{77});
      std::string id;
      for (const std::byte byte : record->map.build_id)
        id += std::to_string(std::to_integer<int>(byte));
      found_.push_back({record->pid, record->map.begin, record->map.end, record->map.offset, id});
    }
    EXPECT_EQ(reader->invalid(), 0U);
    std::filesystem::remove(path);
  }

  struct Found {
    uint32_t space;
    Address begin;
    Address end;
    uint64_t offset;
    std::string build_id;
    bool operator==(const Found&) const = default;
    friend void PrintTo(const Found& of, std::ostream* out) {
      *out << of.space << std::hex << ' ' << of.begin << ' ' << of.end << ' ' << of.offset << ' '
           << of.build_id;
    }
  };

  FakeRam ram_;
  MappedFrames frames_{std::make_unique<FakeMemory>(ram_)};
  GuestPrograms programs_{frames_};
  std::vector<Found> found_;
};

TEST_F(GuestProgramsTest, FindsTheFileOfAnAddressAndOfWordsOnTheStack) {
  Load({.at = kProgram});
  Load({.at = kLibrary, .code = 0x5000, .build_id = {9, 9, 9, 9, 9, 9, 9, 9}});
  const Found program{1, kProgram + 0x2000, kProgram + 0x5000, 0x2000, "12345678"};
  const Found library{1, kLibrary + 0x5000, kLibrary + 0x8000, 0x5000, "99999999"};
  EXPECT_EQ(Find(At(kProgram + 0x3123)), 1);
  EXPECT_THAT(found_, ElementsAre(program));
  // Data, kernel's addresses, small numbers, and what is not mapped, are no code.
  EXPECT_EQ(Find(At(kProgram + 0x2000), {kProgram, 5, ~uint64_t{0}, 0xffff'ffff'8100'0000,
                                         kLibrary + 0x6000, kLibrary + 0x6008, 0x7000'0000'0000}),
            1);
  EXPECT_THAT(found_, ElementsAre(library));
  EXPECT_EQ(Find(At(kLibrary + 0x7fff), {kProgram + 0x2fff}), 1);
  EXPECT_THAT(found_, IsEmpty()) << "both are known";
}

TEST_F(GuestProgramsTest, WithoutSearchKnowsWhatWasFound) {
  Load({.at = kProgram});
  Load({.at = kLibrary, .code = 0x5000, .build_id = {9, 9, 9, 9, 9, 9, 9, 9}});
  EXPECT_EQ(Find(At(kProgram + 0x3123), {}, /*search=*/false), 0);
  EXPECT_EQ(Find(At(kProgram + 0x3123)), 1);
  EXPECT_EQ(Find(At(kProgram + 0x3123), {kLibrary + 0x6000}, /*search=*/false), 1);
  EXPECT_THAT(found_, IsEmpty());
}

TEST_F(GuestProgramsTest, KnowsAddressSpacesByTheirTopTables) {
  Load({.at = kProgram});
  ram_.frames[8] = ram_.frames[FakeRam::kRoot];
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 1);
  EXPECT_EQ(Find(At(kProgram + 0x2000, 8)), 2);
  EXPECT_THAT(found_, SizeIs(1));
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 1);
}

TEST_F(GuestProgramsTest, FindsHeadersInCodeAndAtFixedAddresses) {
  Load({.at = 0x40'0000, .code = 0x1000, .linked_at = 0x40'0000, .headers_are_code = true});
  EXPECT_EQ(Find(At(0x40'1000)), 1);
  EXPECT_THAT(found_, ElementsAre(Found{1, 0x40'0000, 0x40'4000, 0, "12345678"},
                                  Found{1, 0x40'1000, 0x40'4000, 0x1000, "12345678"}));
}

TEST_F(GuestProgramsTest, LooksPastPagesThatAreNotPresent) {
  Load({.at = kProgram, .code = 0x90'0000});
  for (uint64_t hole = 0x90'1000; hole < 0x90'3000; hole += 0x1000) {
    ram_.Entry(kProgram + hole, 1) = 0;
  }
  ram_.Code(kProgram + 0x90'2000);
  EXPECT_EQ(Find(At(kProgram + 0x90'2000)), 1);
  EXPECT_THAT(found_, SizeIs(1));
}

TEST_F(GuestProgramsTest, NoticesThatAnotherProcessHasTheSpace) {
  Load({.at = kProgram});
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 1);
  programs_.Forget();
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 1) << "the same file is there";
  Load({.at = kProgram, .build_id = {2, 2, 2, 2, 2, 2, 2, 2}});
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 1) << "it was checked just before";
  programs_.Forget();
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 2);
  EXPECT_THAT(found_, SizeIs(1));
}

TEST_F(GuestProgramsTest, KnowsNothingWithoutAFileWithABuildId) {
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 0) << "nothing is mapped";
  ram_.Code(kProgram + 0x2000);
  programs_.Forget();
  EXPECT_EQ(Find(At(kProgram + 0x2000)), 0) << "memory without a file";
  for (const FakeFile& file :
       {FakeFile{.at = kLibrary, .machine = EM_AARCH64}, FakeFile{.at = kLibrary, .id_size = 0},
        FakeFile{.at = kLibrary, .id_size = 21}, FakeFile{.at = kLibrary, .id_size = 0xffff'ffff},
        FakeFile{.at = kLibrary, .code = 0x2000, .code_size = 0x1000}}) {
    Load(file);
    programs_.Forget();
    EXPECT_EQ(Find(At(kLibrary + 0x4000)), 0);
    EXPECT_THAT(found_, IsEmpty());
  }
}

TEST_F(GuestProgramsTest, WorkIsBounded) {
  // Every page of code below has a header, which says that it has no code there.
  for (Address at = kProgram; at < kProgram + 0x100'0000; at += 2 * kFrameSize) {
    ram_.Write(at, 0x1'0102'464c'457f);
    ram_.Code(at);
  }
  std::vector<uint64_t> words;
  for (Address at = kProgram; at < kProgram + 0x100'0000; at += kFrameSize) words.push_back(at);
  const uint64_t before = frames_.maps();
  EXPECT_EQ(Find(At(kProgram), words), 0);
  EXPECT_LE(frames_.maps() - before, GuestPrograms::kMaxMaps);
}

}  // namespace
}  // namespace xenoscope::sampler
