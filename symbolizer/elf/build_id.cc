#include "symbolizer/elf/build_id.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

namespace xenoscope::symbolizer {
namespace {

using namespace std::literals;

// Limit of program headers, and of notes; linkers make about ten and five.
constexpr uint32_t kMaxHeaders = 256;
constexpr int kMaxNotes = 64;
constexpr std::string_view kOwner = "GNU\0"sv;

bool ReadAt(int fd, uint64_t offset, void* into, size_t size) {
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - size) return false;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd, static_cast<std::byte*>(into) + done, size - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
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

}  // namespace

size_t ReadBuildId(int fd, std::span<uint8_t> id) {
  std::array<unsigned char, EI_NIDENT> ident{};
  if (!ReadAt(fd, 0, ident.data(), ident.size()) ||
      std::memcmp(ident.data(), ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != ELFDATA2LSB) {
    return 0;
  }
  return ident[EI_CLASS] == ELFCLASS32 ? Find<Elf32_Ehdr, Elf32_Phdr>(fd, id)
                                       : Find<Elf64_Ehdr, Elf64_Phdr>(fd, id);
}

}  // namespace xenoscope::symbolizer
