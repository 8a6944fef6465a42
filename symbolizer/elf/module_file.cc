#include "symbolizer/elf/module_file.h"

#include <gelf.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/error.h"
#include "symbolizer/elf/object_sections.h"

namespace xenoscope::symbolizer {
namespace {

constexpr std::string_view kEnding = ".ko";

constexpr std::string_view kOrcAddresses = ".orc_unwind_ip";
constexpr std::string_view kOrcRelocations = ".rela.orc_unwind_ip";
constexpr std::string_view kModuleInfo = ".modinfo";
constexpr std::string_view kStart = ".init";  // sections that only the start of a module needs

// Returns the name if a module can have it (KBUILD_MODNAME, MODULE_NAME_LEN), or nothing.
std::string Checked(std::string name) {
  constexpr size_t kLongest = 55;
  const bool is_name = name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
                       });
  return is_name ? name : std::string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleFile>> ModuleFile::Open(FileContent content,
                                                             std::string path) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<ModuleFile> file(new ModuleFile());
  file->content_ = std::make_shared<const FileContent>(std::move(content));
  file->path_ = std::move(path);
  XENOSCOPE_ASSIGN_OR_RETURN(file->elf_, ElfFile::OpenAny(file->content()));
  GElf_Ehdr header;
  if (gelf_getehdr(file->elf_.get(), &header) == nullptr || header.e_type != ET_REL ||
      header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return InvalidError("it is not a kernel's module for x86-64: a .ko file is");
  }
  XENOSCOPE_RETURN_IF_ERROR(file->ReadSections());
  file->ReadDefinitions();
  file->name_ = file->NameInside();
  if (file->name_.empty()) file->name_ = NameOfPath(file->path_);
  if (file->name_.empty()) {
    return InvalidError("it is an object file that does not say of which module it is");
  }
  return file;
}

std::string ModuleFile::NameOfPath(std::string_view path) {
  path = WithoutCompression(path);
  if (!path.ends_with(kEnding)) return {};
  path.remove_suffix(kEnding.size());
  const size_t slash = path.rfind('/');
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  std::ranges::replace(name, '-', '_');
  return Checked(std::move(name));
}

// One of the strings "KEY=VALUE" of .modinfo is "name=NAME" since Linux 4.13.
std::string ModuleFile::NameInside() const {
  constexpr std::string_view kKey = "name=";
  std::string_view left = AsText(elf_.Section(kModuleInfo));
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find('\0'));
    if (item.starts_with(kKey)) return Checked(std::string(item.substr(kKey.size())));
    left.remove_prefix(std::min(item.size() + 1, left.size()));
  }
  return {};
}

absl::Status ModuleFile::ReadSections() {
  const ObjectSections objects(elf_, content());
  size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) {
    return InvalidError("its section headers are damaged");
  }
  sections_.emplace_back();  // number 0 is no section
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_.get(), section)) != nullptr) {
    Section& of = sections_.emplace_back();
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const auto bytes = Slice(content(), header.sh_offset, header.sh_size);
    if (!bytes) continue;
    if (header.sh_type == SHT_SYMTAB && symbols_.empty()) {
      symbols_ = *bytes;
      names_ = header.sh_link;
    }
    const char* const name = elf_strptr(elf_.get(), names, header.sh_name);
    of = {.size = header.sh_size,
          .alignment = std::max<uint64_t>(header.sh_addralign, 1),
          .address = objects.AddressOf(sections_.size() - 1),
          .is_start = name != nullptr && std::string_view(name).starts_with(kStart)};
  }
  if (symbols_.empty()) return NotFoundError("it has no symbols: it was stripped, or cut off");
  return absl::OkStatus();
}

void ModuleFile::ReadDefinitions() {
  for (size_t i = 1; const auto symbol = SymbolAt(i); ++i) {
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= sections_.size()) continue;
    const char* const name = elf_strptr(elf_.get(), names_, symbol->st_name);
    if (name == nullptr || *name == '\0') continue;
    const auto [known, is_new] = definitions_.try_emplace(
        name,
        Definition{symbol->st_shndx, symbol->st_value, ELF64_ST_TYPE(symbol->st_info) == STT_FUNC});
    if (!is_new) known->second = {};
  }
}

std::optional<Elf64_Sym> ModuleFile::SymbolAt(uint64_t number) const {
  if (number >= symbols_.size() / sizeof(Elf64_Sym)) return std::nullopt;
  return Load<Elf64_Sym>(symbols_, number * sizeof(Elf64_Sym));
}

std::optional<Address> ModuleFile::AddressIn(uint64_t section, uint64_t offset) const {
  if (section >= sections_.size() || sections_[section].address == 0 ||
      offset > sections_[section].size) {
    return std::nullopt;
  }
  return sections_[section].address + offset;
}

absl::StatusOr<std::vector<LoadedCode>> ModuleFile::PlacesOf(
    std::span<const LoadedFunction> functions) const {
  // kallsyms cuts names there (KSYM_NAME_LEN, 512 since Linux 6.1).
  constexpr size_t kMaxWholeName = 126;
  std::map<uint32_t, Address> begins;  // of sections, by number
  size_t agreeing = 0;
  for (const LoadedFunction& function : functions) {
    const auto found = definitions_.find(function.name);
    if (found == definitions_.end()) {
      if (function.name.size() >= kMaxWholeName) continue;
      return InvalidError("it is of another build: the loaded module has {}, which is not in it",
                          function.name);
    }
    const auto [section, offset, is_function] = found->second;
    if (section == 0 || sections_[section].address == 0) continue;
    const Address begin = function.address - offset;
    const auto [known, is_new] = begins.try_emplace(section, begin);
    if (known->second != begin || begin % sections_[section].alignment != 0 ||
        offset > sections_[section].size) {
      return InvalidError("it is of another build: {} is at another place in the loaded module",
                          function.name);
    }
    ++agreeing;
  }
  if (agreeing == 0 || (agreeing == 1 && !HasOneFunction())) {
    return InvalidError("{} of its functions are in kallsyms, too few to say where it was loaded",
                        agreeing);
  }
  std::vector<LoadedCode> places;
  for (const auto& [section, begin] : begins) {
    places.push_back({begin, begin + sections_[section].size, sections_[section].address});
  }
  std::ranges::sort(places, {}, &LoadedCode::begin);
  for (size_t i = 0; i < places.size(); ++i) {
    const bool overlaps = i > 0 && places[i].begin < places[i - 1].end;
    if (overlaps || places[i].end < places[i].begin) {
      return InvalidError("its sections would overlap where kallsyms says that they are");
    }
  }
  return places;
}

bool ModuleFile::HasOneFunction() const {
  return std::ranges::count_if(definitions_, [this](const auto& named) {
           const auto& [section, offset, is_function] = named.second;
           return section != 0 && is_function && sections_[section].address != 0 &&
                  !sections_[section].is_start;
         }) == 1;
}

std::optional<std::vector<Address>> ModuleFile::OrcBegins() const {
  const size_t count = elf_.Section(kOrcAddresses).size() / sizeof(int32_t);
  const Bytes relocations = elf_.Section(kOrcRelocations);
  if (count == 0 || relocations.size() != count * sizeof(Elf64_Rela)) return std::nullopt;
  constexpr Address kNone = std::numeric_limits<Address>::max();
  std::vector<Address> begins(count, kNone);
  for (size_t i = 0; i < count; ++i) {
    // An entry is relative to its own place, which is what such a relocation makes.
    const auto relocation = LoadUnchecked<Elf64_Rela>(relocations.data() + i * sizeof(Elf64_Rela));
    const auto symbol = SymbolAt(ELF64_R_SYM(relocation.r_info));
    const uint64_t entry = relocation.r_offset / sizeof(int32_t);
    if (!symbol || ELF64_R_TYPE(relocation.r_info) != R_X86_64_PC32 ||
        relocation.r_offset % sizeof(int32_t) != 0 || entry >= count || begins[entry] != kNone) {
      return std::nullopt;
    }
    const auto begin =
        AddressIn(symbol->st_shndx, symbol->st_value + static_cast<uint64_t>(relocation.r_addend));
    if (!begin) return std::nullopt;
    begins[entry] = *begin;
  }
  return begins;
}

std::vector<Bytes> ModuleFile::LoadedParts() const {
  return {elf_.Section(kOrcAddresses), OrcEntries(), elf_.Section(kModuleInfo)};
}

}  // namespace xenoscope::symbolizer
