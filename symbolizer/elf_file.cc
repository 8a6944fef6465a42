#include "symbolizer/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>

#include <string_view>

#include "base/error.h"

namespace xenoscope::symbolizer {

bool IsElf(Bytes bytes) { return AsText(bytes).starts_with(std::string_view(ELFMAG, SELFMAG)); }

absl::StatusOr<ElfFile> ElfFile::Open(Bytes bytes) {
  if (!IsElf(bytes)) return InvalidError("it is not an ELF file");
  if (elf_version(EV_CURRENT) == EV_NONE) return InternalError("libelf is older than its header");
  ElfFile file;
  // libelf does not write to memory that it only reads from; its interface is older than const.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast,cppcoreguidelines-pro-type-reinterpret-cast)
  auto* memory = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  file.elf_.reset(elf_memory(memory, bytes.size()));
  GElf_Ehdr header;
  if (!file.elf_ || gelf_getehdr(file.get(), &header) == nullptr) {
    return InvalidError("it is a damaged ELF file: {}", elf_errmsg(-1));
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return InvalidError(
        "it is no linked ELF file (its type is {}): its functions have no addresses",
        header.e_type);
  }
  file.position_independent_ = header.e_type == ET_DYN;
  return file;
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
