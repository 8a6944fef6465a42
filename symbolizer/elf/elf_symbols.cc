#include "symbolizer/elf/elf_symbols.h"

#include <gelf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

// The addresses of a section.
struct Section {
  Address begin = 0;
  Address end = 0;
  Address moved = 0;  // distance from the addresses of its symbols
  bool executable = false;
};

struct Sections {
  std::vector<Section> by_number;
  Elf_Scn* symtab = nullptr;
  Elf_Scn* dynsym = nullptr;
};

// Returns the sections of a linked file at its own addresses, or the sections with code of a
// livepatch one after the other from `code` on (move_payload() in xen/common/livepatch.c).
Sections SectionsOf(const ElfFile& file, std::optional<Address> code = std::nullopt) {
  Sections sections;
  sections.by_number.emplace_back();  // number 0 is no section
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file.get(), section)) != nullptr) {
    Section& extent = sections.by_number.emplace_back();
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const bool loaded = (header.sh_flags & SHF_ALLOC) != 0;
    const bool executable = (header.sh_flags & SHF_EXECINSTR) != 0;
    if (loaded && header.sh_size > 0) {
      constexpr Address kLast = std::numeric_limits<Address>::max();
      extent.begin = header.sh_addr;
      extent.end = header.sh_addr + std::min(header.sh_size, kLast - header.sh_addr);
      extent.executable = executable;
    }
    if (code && loaded && executable) {
      const Address alignment = std::max<Address>(header.sh_addralign, 1);
      *code = (*code + alignment - 1) / alignment * alignment;
      extent.moved = *code - header.sh_addr;
      *code += header.sh_size;
    }
    if (header.sh_type == SHT_SYMTAB && sections.symtab == nullptr) sections.symtab = section;
    if (header.sh_type == SHT_DYNSYM && sections.dynsym == nullptr) sections.dynsym = section;
  }
  return sections;
}

Binding BindingOf(const GElf_Sym& symbol) {
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_LOCAL:
      return Binding::kLocal;
    case STB_WEAK:
      return Binding::kWeak;
    default:
      return Binding::kGlobal;
  }
}

// Returns the function of a symbol, or nothing.
std::optional<Symbol> FunctionOf(const GElf_Sym& symbol, const Sections& sections) {
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections.by_number.size()) {
    return std::nullopt;
  }
  const Section& section = sections.by_number[symbol.st_shndx];
  const int type = GELF_ST_TYPE(symbol.st_info);
  if (!section.executable || symbol.st_value < section.begin || symbol.st_value >= section.end ||
      !(type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE)) {
    return std::nullopt;
  }
  return Symbol{.address = symbol.st_value + section.moved,
                .size = std::min(symbol.st_size, section.end - symbol.st_value),
                .binding = BindingOf(symbol)};
}

// Adds the symbols of one table; damaged ones are counted as malformed.
void AddSymbols(const ElfFile& file, const Sections& sections, Elf_Scn* section,
                SymbolTable& table) {
  GElf_Shdr header;
  if (gelf_getshdr(section, &header) == nullptr) return;
  Elf_Data* data = elf_getdata(section, nullptr);
  const size_t size = gelf_fsize(file.get(), ELF_T_SYM, 1, EV_CURRENT);
  if (data == nullptr || size == 0) return table.lines.Malformed(1);
  const size_t count = std::min<size_t>(data->d_size / size, std::numeric_limits<int>::max());
  for (size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) {
      table.lines.Malformed(i);
      continue;
    }
    auto function = FunctionOf(symbol, sections);
    if (!function) {
      ++table.lines.others;
      continue;
    }
    const char* name = elf_strptr(file.get(), header.sh_link, symbol.st_name);
    if (name == nullptr) {
      table.lines.Malformed(i);
      continue;
    }
    function->name = name;
    // These are local labels of the assembler; 32-bit x86 and gas keep some.
    if (function->name.empty() || function->name.starts_with(".L")) {
      ++table.lines.others;
      continue;
    }
    ++table.lines.functions;
    table.AddCode(*function);
  }
}

absl::StatusOr<ElfSymbols> ReadSections(const ElfFile& file, std::string_view image,
                                        const Sections& sections) {
  ElfSymbols symbols;
  SymbolTable& table = symbols.table;
  table.images.emplace_back(image);
  for (const Section& section : sections.by_number) {
    if (!section.executable) continue;
    table.ends.push_back(section.begin + section.moved);
    table.ends.push_back(section.end + section.moved);
  }
  if (sections.symtab != nullptr) AddSymbols(file, sections, sections.symtab, table);
  if (table.functions.empty() && sections.dynsym != nullptr) {
    symbols.only_dynamic = true;
    AddSymbols(file, sections, sections.dynsym, table);
  }
  if (!table.functions.empty()) return symbols;
  if (table.lines.malformed > 0) return InvalidError("its symbol table is damaged");
  return NotFoundError(
      "it was stripped of its symbols; give the file as it was linked, or its debug file");
}

}  // namespace

absl::StatusOr<ElfSymbols> ReadElf(const ElfFile& file, std::string_view image) {
  return ReadSections(file, image, SectionsOf(file));
}

bool IsLivepatch(const ElfFile& file) { return !file.Section(".livepatch.funcs").empty(); }

absl::StatusOr<ElfSymbols> ReadLivepatchElf(const ElfFile& file, std::string_view image,
                                            Address code) {
  return ReadSections(file, image, SectionsOf(file, code));
}

}  // namespace xenoscope::symbolizer
