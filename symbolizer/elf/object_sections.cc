#include "symbolizer/elf/object_sections.h"

#include <gelf.h>

#include <cstring>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

constexpr Address kFirstCode = 0x1000;            // so that no code is at 0, which says "none"
constexpr uint64_t kGap = 16;                     // between two sections
constexpr uint64_t kMaxCode = uint64_t{1} << 40;  // of a file, so that no address overflows

// Returns how many bytes a relocation of this type replaces by symbol + addend; 0: it is of another
// kind.
size_t WidthOf(uint32_t type) {
  switch (type) {
    case R_X86_64_64:
      return sizeof(uint64_t);
    case R_X86_64_32:
    case R_X86_64_32S:
      return sizeof(uint32_t);
    default:
      return 0;
  }
}

}  // namespace

ObjectSections::ObjectSections(const ElfFile& elf, Bytes file) {
  GElf_Ehdr header;
  if (gelf_getehdr(elf.get(), &header) == nullptr || header.e_type != ET_REL) return;
  is_x86_64_ = header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
               header.e_ident[EI_DATA] == ELFDATA2LSB;
  size_t count = 0;
  if (elf_getshdrnum(elf.get(), &count) != 0) return;
  sections_.resize(count);
  Address next = kFirstCode;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf.get(), section)) != nullptr) {
    const size_t number = elf_ndxscn(section);
    GElf_Shdr of;
    if (number >= count || gelf_getshdr(section, &of) == nullptr) continue;
    constexpr uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;
    const bool may_be_code = of.sh_type == SHT_PROGBITS || of.sh_type == SHT_NOBITS;
    if (may_be_code && (of.sh_flags & kCode) == kCode) {
      if (of.sh_size > kMaxCode - next) continue;
      if (text_begin_ == 0) text_begin_ = next;
      sections_[number].address = next;
      next += of.sh_size + kGap;
      continue;
    }
    if (of.sh_type != SHT_RELA && of.sh_type != SHT_SYMTAB) continue;
    sections_[number].content = Slice(file, of.sh_offset, of.sh_size).value_or(Bytes());
    if (of.sh_type != SHT_RELA || of.sh_info == 0 || of.sh_info >= count || of.sh_link >= count) {
      continue;
    }
    sections_[number].symbols = of.sh_link;
    // A second one, which no linker writes, could make the work quadratic.
    Section& target = sections_[of.sh_info];
    if (target.relocations == 0) target.relocations = number;
  }
}

Address ObjectSections::AddressOf(size_t section) const {
  return section < sections_.size() ? sections_[section].address : 0;
}

bool ObjectSections::HasRelocations(size_t section) const {
  return section < sections_.size() && sections_[section].relocations != 0;
}

absl::Status ObjectSections::Relocate(size_t section, std::span<std::byte> content) const {
  if (!HasRelocations(section)) return absl::OkStatus();
  if (!is_x86_64_) return InvalidError("its relocations are not those of x86-64");
  const Section& of = sections_[sections_[section].relocations];
  const Bytes symbols = sections_[of.symbols].content;
  for (size_t at = 0; at + sizeof(Elf64_Rela) <= of.content.size(); at += sizeof(Elf64_Rela)) {
    const auto relocation = LoadUnchecked<Elf64_Rela>(of.content.data() + at);
    const size_t width = WidthOf(ELF64_R_TYPE(relocation.r_info));
    if (width == 0) continue;
    const auto symbol =
        Load<Elf64_Sym>(symbols, ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym));
    if (!symbol || relocation.r_offset > content.size() ||
        content.size() - relocation.r_offset < width) {
      return InvalidError("a relocation, or its symbol, is not in the file");
    }
    const bool is_here = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE;
    const uint64_t base = is_here ? AddressOf(symbol->st_shndx) + symbol->st_value : 0;
    const uint64_t value = base + static_cast<uint64_t>(relocation.r_addend);
    std::memcpy(content.data() + relocation.r_offset, &value, width);
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::symbolizer
