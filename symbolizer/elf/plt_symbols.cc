#include "symbolizer/elf/plt_symbols.h"

#include <gelf.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/bytes.h"

namespace xenoscope::symbolizer {
namespace {

constexpr uint64_t kEntry = 16;
// Size of an entry with a jump only: in .plt.got, and in static programs.
constexpr uint64_t kShortEntry = 8;
constexpr uint64_t kMaxEntries = 1 << 20;

struct NamedSection {
  std::string_view name;
  GElf_Shdr header;
  Elf_Scn* scn = nullptr;
};

// Calls use(section) for each section that has a name.
template <typename Use>
void ForEachSection(const ElfFile& file, Use use) {
  size_t names = 0;
  if (elf_getshdrstrndx(file.get(), &names) != 0) return;
  NamedSection section;
  while ((section.scn = elf_nextscn(file.get(), section.scn)) != nullptr) {
    if (gelf_getshdr(section.scn, &section.header) == nullptr) continue;
    const char* name = elf_strptr(file.get(), names, section.header.sh_name);
    if (name == nullptr) continue;
    section.name = name;
    use(section);
  }
}

// The content of slots of the global offset table once the file is loaded: address -> name.
using Slots = absl::flat_hash_map<Address, std::string_view>;

// Returns the names of functions that the loader chooses, by the address of the code that chooses.
Slots IfuncResolvers(const ElfFile& file) {
  Slots choosers;
  ForEachSection(file, [&](const NamedSection& section) {
    if (section.header.sh_type != SHT_SYMTAB && section.header.sh_type != SHT_DYNSYM) return;
    Elf_Data* data = elf_getdata(section.scn, nullptr);
    if (data == nullptr) return;
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      if (GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) continue;
      const char* name = elf_strptr(file.get(), section.header.sh_link, symbol.st_name);
      if (name != nullptr && *name != '\0') choosers.try_emplace(symbol.st_value, name);
    }
  });
  return choosers;
}

Slots SlotsOf(const ElfFile& file) {
  Slots slots;
  std::optional<Slots> choosers;
  ForEachSection(file, [&](const NamedSection& section) {
    if (section.header.sh_type != SHT_RELA) return;
    Elf_Scn* symbols = elf_getscn(file.get(), section.header.sh_link);
    GElf_Shdr of_symbols = {};
    Elf_Data* table = nullptr;
    if (symbols != nullptr && gelf_getshdr(symbols, &of_symbols) != nullptr &&
        (of_symbols.sh_type == SHT_DYNSYM || of_symbols.sh_type == SHT_SYMTAB)) {
      table = elf_getdata(symbols, nullptr);
    }
    Elf_Data* data = elf_getdata(section.scn, nullptr);
    if (data == nullptr) return;
    GElf_Rela relocation;
    for (int i = 0; gelf_getrela(data, i, &relocation) != nullptr; ++i) {
      const auto type = GELF_R_TYPE(relocation.r_info);
      if (type == R_X86_64_IRELATIVE) {
        if (!choosers) choosers = IfuncResolvers(file);
        const auto chooser = choosers->find(static_cast<Address>(relocation.r_addend));
        if (chooser != choosers->end()) slots.try_emplace(relocation.r_offset, chooser->second);
        continue;
      }
      GElf_Sym symbol;
      if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || table == nullptr ||
          gelf_getsym(table, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr) {
        continue;
      }
      const char* name = elf_strptr(file.get(), of_symbols.sh_link, symbol.st_name);
      if (name != nullptr && *name != '\0') slots.try_emplace(relocation.r_offset, name);
    }
  });
  return slots;
}

// Returns the slot whose content an entry jumps to: [endbr64] [bnd] jmp *distance(%rip).
std::optional<Address> SlotOf(Bytes entry, Address at) {
  constexpr std::string_view kEndbr64 = "\xf3\x0f\x1e\xfa";
  constexpr std::string_view kJump = "\xff\x25";
  uint64_t offset = 0;
  if (AsText(entry).starts_with(kEndbr64)) offset += kEndbr64.size();
  if (AsText(entry).substr(offset).starts_with('\xf2')) ++offset;
  if (!AsText(entry).substr(offset).starts_with(kJump)) return std::nullopt;
  offset += kJump.size();
  const auto distance = Load<int32_t>(entry, offset);
  if (!distance) return std::nullopt;
  return at + offset + sizeof(*distance) + static_cast<Address>(int64_t{*distance});
}

}  // namespace

void AddPltEntries(const ElfFile& file, SymbolTable& table) {
  GElf_Ehdr header;
  if (gelf_getehdr(file.get(), &header) == nullptr || header.e_machine != EM_X86_64) return;
  const Slots slots = SlotsOf(file);
  if (slots.empty()) return;
  ForEachSection(file, [&](const NamedSection& section) {
    if (section.name != ".plt" && section.name != ".plt.sec" && section.name != ".plt.got" &&
        section.name != ".iplt") {
      return;
    }
    const Bytes code = file.Section(section.name);
    const uint64_t step = section.header.sh_addralign <= kShortEntry ? kShortEntry : kEntry;
    for (uint64_t at = 0; at + step <= code.size() && at / step < kMaxEntries; at += step) {
      const Address address = section.header.sh_addr + at;
      const auto slot = SlotOf(code.subspan(at, step), address);
      const auto found = slot ? slots.find(*slot) : slots.end();
      if (found == slots.end()) continue;
      std::string& name = table.made_names->emplace_back(found->second);
      name += "@plt";
      table.functions.push_back({.address = address, .size = step, .name = name});
    }
  });
}

}  // namespace xenoscope::symbolizer
