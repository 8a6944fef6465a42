// The note with the build-id, and the content id of files without one, in whole, truncated and
// invented files.
#include "symbolizer/elf/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace xenoscope::symbolizer {
namespace {

using Id = std::vector<uint8_t>;
const Id kId = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

template <typename T>
void Put(std::string& file, size_t at, const T& value) {
  if (file.size() < at + sizeof value) file.resize(at + sizeof value);
  std::memcpy(file.data() + at, &value, sizeof value);
}

std::string Note(uint32_t type, const std::string& owner, const Id& content) {
  const Elf64_Nhdr header{static_cast<uint32_t>(owner.size()),
                          static_cast<uint32_t>(content.size()), type};
  std::string note;
  Put(note, 0, header);
  note += owner;
  note.resize((note.size() + 3) / 4 * 4);
  note.append(content.begin(), content.end());
  note.resize((note.size() + 3) / 4 * 4);
  return note;
}

const std::string kGnu("GNU\0", 4);
const std::string kGo("Go\0\0", 4);

// A header, two program headers, and the notes that the second one names.
template <typename Header, typename ProgramHeader>
std::string File(unsigned char kind, const std::string& notes) {
  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = kind;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(ProgramHeader);
  header.e_phnum = 2;
  std::string file;
  Put(file, 0, header);
  Put(file, sizeof header, ProgramHeader{});
  ProgramHeader of_notes{};
  of_notes.p_type = PT_NOTE;
  of_notes.p_align = 4;
  of_notes.p_offset = sizeof header + 2 * sizeof of_notes;
  of_notes.p_filesz = static_cast<decltype(of_notes.p_filesz)>(notes.size());
  Put(file, sizeof header + sizeof of_notes, of_notes);
  return file + notes;
}

std::string File64(const std::string& notes) {
  return File<Elf64_Ehdr, Elf64_Phdr>(ELFCLASS64, notes);
}

// Returns what `read` finds in a file with this content, followed by zeros up to `size` bytes.
Id ReadBy(size_t (*read)(int, std::span<uint8_t>), const std::string& content, off_t size = 0) {
  const int fd = memfd_create("elf", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  EXPECT_EQ(size > 0 ? ftruncate(fd, size) : 0, 0);
  Id id(64);
  id.resize(read(fd, id));
  close(fd);
  return id;
}

Id Read(const std::string& content) { return ReadBy(ReadBuildId, content); }
Id ReadOrContent(const std::string& content, off_t size = 0) {
  return ReadBy(ReadFileId, content, size);
}

TEST(BuildIdTest, ReadsBothElfClassesBehindOtherNotes) {
  const std::string notes = Note(1, kGnu, {1, 2}) + Note(3, kGo, kId) + Note(3, kGnu, kId);
  EXPECT_EQ(Read(File64(notes)), kId);
  EXPECT_EQ((Read(File<Elf32_Ehdr, Elf32_Phdr>(ELFCLASS32, notes))), kId);
}

TEST(BuildIdTest, TruncatedFileHasNone) {
  const std::string file = File64(Note(1, kGnu, {1, 2}) + Note(3, kGnu, kId));
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(Read(file.substr(0, size)), Id()) << size;
}

TEST(BuildIdTest, MalformedFileHasNone) {
  const std::string good = File64(Note(3, kGnu, kId));
  std::string big_endian = good;
  big_endian[EI_DATA] = ELFDATA2MSB;
  std::string headers_beyond = good;
  Put(headers_beyond, offsetof(Elf64_Ehdr, e_phoff), uint64_t{0xffff'ffff'ffff'fff0});
  std::string strange_headers = good;
  Put(strange_headers, offsetof(Elf64_Ehdr, e_phentsize), uint16_t{1});
  std::string notes_beyond = good;
  const size_t of_notes = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  Put(notes_beyond, of_notes + offsetof(Elf64_Phdr, p_offset), uint64_t{1} << 63);
  std::string endless = good;
  Put(endless, of_notes + offsetof(Elf64_Phdr, p_offset), ~uint64_t{0});
  std::string long_owner = good;
  Put(long_owner, of_notes + sizeof(Elf64_Phdr), ~uint32_t{0});
  for (const std::string& file : {std::string(), std::string("\177ELF"), big_endian, headers_beyond,
                                  strange_headers, notes_beyond, endless, long_owner,
                                  File64(Note(3, kGnu, Id(65))), File64(Note(3, kGnu, {}))}) {
    EXPECT_EQ(Read(file), Id());
  }
}

// A thousand million empty notes: reading them all would take minutes.
TEST(BuildIdTest, LimitsBytesOfNotes) {
  std::string file = File64("");
  const size_t of_notes = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  Put(file, of_notes + offsetof(Elf64_Phdr, p_filesz), uint64_t{1} << 40);
  const int fd = memfd_create("elf", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, file.data(), file.size()), static_cast<ssize_t>(file.size()));
  ASSERT_EQ(ftruncate(fd, off_t{1} << 40), 0);
  Id id(64);
  EXPECT_EQ(ReadBuildId(fd, id), 0U);
  close(fd);
}

TEST(ContentIdTest, FileWithBuildIdHasThat) {
  EXPECT_EQ(ReadOrContent(File64(Note(3, kGnu, kId))), kId);
}

TEST(ContentIdTest, IsOfTheWholeContent) {
  const std::string file = File64(Note(4, kGo, kId)) + std::string(100'000, 'x');
  const Id id = ReadOrContent(file);
  EXPECT_EQ(id.size(), 12U);
  std::string other = file;
  other.back() = 'y';
  EXPECT_NE(ReadOrContent(other), id);
  EXPECT_NE(ReadOrContent(file + 'x'), id);
  EXPECT_EQ(ReadOrContent(file), id);
}

// The recorder reads the file, a report has it mapped.
TEST(ContentIdTest, IsTheSameOfFileAndOfBytes) {
  for (const size_t size : {size_t{0}, size_t{1} << 16, (size_t{1} << 16) + 1}) {
    const std::string file = File64("") + std::string(size, 'x');
    const std::string id = ContentIdOf(AsBytes(file));
    EXPECT_EQ(fmt::format("{:02x}", fmt::join(ReadOrContent(file), "")), id);
    EXPECT_TRUE(IsContentId(id));
  }
  EXPECT_FALSE(IsContentId(""));
  EXPECT_FALSE(IsContentId(fmt::format("{:02x}", fmt::join(kId, ""))));
}

// A file of a tebibyte takes as long as one of 64 MiB.
TEST(ContentIdTest, CoversTheFirst64MiB) {
  const std::string file = File64("");
  const Id id = ReadOrContent(file, off_t{64} << 20);
  EXPECT_EQ(ReadOrContent(file, off_t{1} << 40), id);
  EXPECT_NE(ReadOrContent(file, (off_t{64} << 20) - 1), id);
}

TEST(ContentIdTest, OtherFilesHaveNone) {
  EXPECT_EQ(ReadOrContent(""), Id());
  EXPECT_EQ(ReadOrContent("#!/bin/sh"), Id());
  Id id(64);
  EXPECT_EQ(ReadFileId(-1, id), 0U);
  const std::string file = File64("");
  EXPECT_EQ(
      ReadBy([](int fd, std::span<uint8_t> into) { return ReadFileId(fd, into.first(11)); }, file),
      Id());
}

}  // namespace
}  // namespace xenoscope::symbolizer
