#include "symbolizer/elf/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/crc.h"

namespace xenoscope::symbolizer {
namespace {

using namespace std::literals;

// Limit of program headers, and of notes; linkers make about ten and five.
constexpr uint32_t kMaxHeaders = 256;
constexpr int kMaxNotes = 64;
constexpr std::string_view kOwner = "GNU\0"sv;
constexpr uint64_t kMaxContentBytes = uint64_t{64} << 20;  // limit of what a content id covers

struct ContentId {
  uint64_t bytes = 0;  // bytes of the file that the id covers
  uint32_t crc = 0;    // their CRC-32

  static constexpr size_t kSize = sizeof bytes + sizeof crc;
  [[nodiscard]] std::array<uint8_t, kSize> Encoded() const {
    std::array<uint8_t, kSize> id{};
    std::memcpy(id.data(), &bytes, sizeof bytes);
    std::memcpy(id.data() + sizeof bytes, &crc, sizeof crc);
    return id;
  }
};

// Returns the number of bytes that were read: less than `size` at the end of the file; nothing
// where it cannot be read.
std::optional<size_t> ReadUpTo(int fd, uint64_t offset, void* into, size_t size) {
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - size) return std::nullopt;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd, static_cast<std::byte*>(into) + done, size - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

bool ReadAt(int fd, uint64_t offset, void* into, size_t size) {
  return ReadUpTo(fd, offset, into, size) == size;
}

uint64_t Aligned(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Searches the notes in [offset, offset + size) of the file. ELF files of 32 and 64 bits have the
// same header of notes.
size_t FindInNotes(int fd, uint64_t offset, uint64_t size, uint64_t alignment,
                   std::span<uint8_t> id, int& notes_left) {
  uint64_t at = 0;
  while (at < size && size - at >= sizeof(Elf64_Nhdr) && notes_left-- > 0) {
    Elf64_Nhdr note{};
    if (!ReadAt(fd, offset + at, &note, sizeof note)) return 0;
    const uint64_t name = at + sizeof note;
    const uint64_t content = Aligned(name + note.n_namesz, alignment);
    if (content > size || size - content < note.n_descsz) return 0;
    std::array<char, kOwner.size()> owner{};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == owner.size() &&
        ReadAt(fd, offset + name, owner.data(), owner.size()) &&
        std::string_view(owner.data(), owner.size()) == kOwner) {
      const bool fits = note.n_descsz > 0 && note.n_descsz <= id.size();
      return fits && ReadAt(fd, offset + content, id.data(), note.n_descsz) ? note.n_descsz : 0;
    }
    at = Aligned(content + note.n_descsz, alignment);
  }
  return 0;
}

template <typename Header, typename ProgramHeader>
size_t Find(int fd, std::span<uint8_t> id) {
  Header header{};
  if (!ReadAt(fd, 0, &header, sizeof header) || header.e_phentsize != sizeof(ProgramHeader))
    return 0;
  const uint32_t headers = std::min<uint32_t>(header.e_phnum, kMaxHeaders);
  int notes_left = kMaxNotes;
  for (uint32_t i = 0; i < headers; ++i) {
    ProgramHeader segment{};
    const uint64_t at = uint64_t{header.e_phoff} + uint64_t{i} * sizeof segment;
    if (!ReadAt(fd, at, &segment, sizeof segment)) return 0;
    if (segment.p_type != PT_NOTE) continue;
    const uint64_t alignment = segment.p_align == 8 ? 8 : 4;
    const uint64_t end = uint64_t{segment.p_offset} + segment.p_filesz;
    if (end < segment.p_offset) continue;
    const size_t size =
        FindInNotes(fd, segment.p_offset, segment.p_filesz, alignment, id, notes_left);
    if (size > 0) return size;
  }
  return 0;
}

// Returns the class of an ELF file; ELFCLASSNONE where it is not such a file.
unsigned char ElfClassOf(int fd) {
  std::array<unsigned char, EI_NIDENT> ident{};
  if (!ReadAt(fd, 0, ident.data(), ident.size()) ||
      std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB) {
    return ELFCLASSNONE;
  }
  return ident[EI_CLASS];
}

}  // namespace

size_t ReadBuildId(int fd, std::span<uint8_t> id) {
  const unsigned char elf_class = ElfClassOf(fd);
  if (elf_class == ELFCLASSNONE) return 0;
  return elf_class == ELFCLASS32 ? Find<Elf32_Ehdr, Elf32_Phdr>(fd, id)
                                 : Find<Elf64_Ehdr, Elf64_Phdr>(fd, id);
}

size_t ReadFileId(int fd, std::span<uint8_t> id) {
  if (const size_t size = ReadBuildId(fd, id); size > 0) return size;
  if (ElfClassOf(fd) == ELFCLASSNONE || id.size() < ContentId::kSize) return 0;
  std::array<std::byte, size_t{64} << 10> block{};
  static_assert(kMaxContentBytes % block.size() == 0);
  ContentId content;
  while (content.bytes < kMaxContentBytes) {
    const auto size = ReadUpTo(fd, content.bytes, block.data(), block.size());
    if (!size) return 0;
    content.bytes += *size;
    content.crc = Crc32(std::span(block).first(*size), content.crc);
    if (*size < block.size()) break;
  }
  std::ranges::copy(content.Encoded(), id.begin());
  return ContentId::kSize;
}

std::string ContentIdOf(Bytes file) {
  const Bytes covered = file.first(std::min<uint64_t>(file.size(), kMaxContentBytes));
  const ContentId content{covered.size(), Crc32(covered)};
  return fmt::format("{:02x}", fmt::join(content.Encoded(), ""));
}

bool IsContentId(std::string_view id) { return id.size() == 2 * ContentId::kSize; }

}  // namespace xenoscope::symbolizer
