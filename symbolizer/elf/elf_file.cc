#include "symbolizer/elf/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>

#include <string_view>

#include "base/error.h"

namespace xenoscope::symbolizer {

bool IsElf(Bytes bytes) { return AsText(bytes).starts_with(std::string_view(ELFMAG, SELFMAG)); }

absl::StatusOr<ElfFile> ElfFile::Open(Bytes bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(ElfFile file, OpenAny(bytes));
  if (!file.linked_) {
    return InvalidError("it is not a linked ELF file: its functions have no addresses");
  }
  return file;
}

absl::StatusOr<ElfFile> ElfFile::OpenAny(Bytes bytes) {
  if (!IsElf(bytes)) return InvalidError("it is not an ELF file");
  if (elf_version(EV_CURRENT) == EV_NONE) return InternalError("libelf is older than its header");
  ElfFile file;
  // libelf does not write to memory that it only reads; its interface lacks const.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast,cppcoreguidelines-pro-type-reinterpret-cast)
  auto* memory = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  file.elf_.reset(elf_memory(memory, bytes.size()));
  GElf_Ehdr header;
  if (!file.elf_ || gelf_getehdr(file.get(), &header) == nullptr) {
    return InvalidError("it is a damaged ELF file: {}", elf_errmsg(-1));
  }
  file.linked_ = header.e_type == ET_EXEC || header.e_type == ET_DYN;
  file.object_ = header.e_type == ET_REL;
  file.position_independent_ = header.e_type == ET_DYN;
  return file;
}

Elf_Scn* ElfFile::FindSection(std::string_view name, GElf_Shdr& header) const {
  size_t names = 0;
  if (elf_getshdrstrndx(get(), &names) != 0) return nullptr;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(get(), section)) != nullptr) {
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* of_section = elf_strptr(get(), names, header.sh_name);
    if (of_section != nullptr && of_section == name) return section;
  }
  return nullptr;
}

Bytes ElfFile::Section(std::string_view name) const {
  GElf_Shdr header;
  Elf_Scn* const section = FindSection(name, header);
  if (section == nullptr) return {};
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const std::byte*>(data->d_buf), data->d_size};
}

Address ElfFile::AddressOfSection(std::string_view name) const {
  GElf_Shdr header;
  return FindSection(name, header) == nullptr ? 0 : header.sh_addr;
}

std::string ElfFile::BuildId() const {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(get(), &bytes);
  std::string hex;
  for (ssize_t i = 0; i < size; ++i) {
    hex += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
  }
  return hex;
}

}  // namespace xenoscope::symbolizer
