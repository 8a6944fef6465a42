#include "symbolizer/image_file.h"

#include <gelf.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "symbolizer/elf/object_sections.h"
#include "symbolizer/elf/plt_symbols.h"
#include "symbolizer/elf/small_debug_file.h"

namespace xenoscope::symbolizer {

absl::StatusOr<std::unique_ptr<ImageFile>> ImageFile::Open(FileContent content, std::string path,
                                                           const FileFinder& finder,
                                                           std::shared_ptr<const IndexCache> cache,
                                                           std::string id) {
  std::unique_ptr<ImageFile> image(new ImageFile());
  image->content_ = std::make_shared<const FileContent>(std::move(content));
  XENOSCOPE_ASSIGN_OR_RETURN(image->elf_, ElfFile::Open(image->content_->bytes()));
  image->path_ = std::move(path);
  image->id_ = std::move(id);
  image->finder_ = finder;
  image->cache_ = std::move(cache);
  size_t count = 0;
  if (elf_getphdrnum(image->elf_.get(), &count) != 0) {
    return InvalidError("it is a damaged ELF file");
  }
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(image->elf_.get(), static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type != PT_LOAD) continue;
    image->parts_.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
  }
  return image;
}

absl::StatusOr<std::unique_ptr<ImageFile>> ImageFile::OpenModule(
    std::shared_ptr<const FileContent> content, std::string path, const FileFinder& finder,
    std::shared_ptr<const IndexCache> cache) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<ImageFile> image(new ImageFile());
  image->content_ = std::move(content);
  XENOSCOPE_ASSIGN_OR_RETURN(image->elf_, ElfFile::OpenAny(image->content()));
  if (!image->elf_.is_object()) return InvalidError("it is not a kernel's module");
  image->path_ = std::move(path);
  image->finder_ = finder;
  image->cache_ = std::move(cache);
  const ObjectSections objects(image->elf_, image->content());
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(image->elf_.get(), section)) != nullptr) {
    GElf_Shdr header;
    const Address address = objects.AddressOf(elf_ndxscn(section));
    if (address == 0 || gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type == SHT_NOBITS) continue;
    image->parts_.push_back({header.sh_offset, header.sh_size, address});
  }
  return image;
}

const FileContent* ImageFile::DebugFile() {
  if (!looked_for_debug_file_) {
    looked_for_debug_file_ = true;
    if (auto found = finder_.DebugFileOf(elf_, path_, id_); found.ok()) {
      debug_file_ = std::make_shared<const FileContent>(std::move(found->content));
      debug_file_path_ = std::move(found->path);
    } else {
      why_no_debug_file_ = std::string(Message(found.status()));
    }
  }
  return debug_file_.get();
}

absl::StatusOr<ElfSymbols> ImageFile::ReadSymbols(std::string_view image) {
  absl::StatusOr<ElfSymbols> symbols = ReadTables(image);
  // The code is in this file: debug files do not have it.
  if (symbols.ok()) AddPltEntries(elf_, symbols->table);
  return symbols;
}

absl::StatusOr<ElfSymbols> ImageFile::ReadTables(std::string_view image) {
  absl::StatusOr<ElfSymbols> own = ReadElf(elf_, image);
  symbols_from_ = path_;
  if (own.ok() && !own->only_dynamic) return own;
  const auto read = [image](Bytes bytes) -> absl::StatusOr<ElfSymbols> {
    XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(bytes));
    return ReadElf(elf, image);
  };
  if (const FileContent* debug = DebugFile()) {
    auto symbols = read(debug->bytes());
    if (symbols.ok() && !symbols->only_dynamic) {
      symbols_from_ = debug_file_path_;
      return symbols;
    }
  }
  if (auto small = SmallDebugFileOf(elf_); small.ok()) {
    small_debug_file_ = *std::move(small);
    auto symbols = read(small_debug_file_->bytes());
    // The small debug file leaves out what .dynsym has.
    if (symbols.ok() && own.ok()) {
      symbols->table.functions.insert(symbols->table.functions.end(), own->table.functions.begin(),
                                      own->table.functions.end());
    }
    if (symbols.ok()) {
      symbols_from_ = path_ + " (.gnu_debugdata)";
      return symbols;
    }
  }
  symbols_from_ = path_ + " (.dynsym: what it exports)";
  return own;
}

DebugInfo* ImageFile::debug_info() {
  if (opened_debug_info_) return debug_info_.get();
  opened_debug_info_ = true;
  if (auto own = DebugInfo::Open(content_, finder_, {path_}, cache_); own.ok()) {
    debug_info_ = *std::move(own);
    debug_path_ = path_;
  } else if (DebugFile() != nullptr) {
    if (auto debug = DebugInfo::Open(debug_file_, finder_, {debug_file_path_, path_}, cache_);
        debug.ok()) {
      debug_info_ = *std::move(debug);
      debug_path_ = debug_file_path_;
    }
  }
  return debug_info_.get();
}

const UnwindTable* ImageFile::unwind_table() {
  if (!opened_unwind_table_) {
    opened_unwind_table_ = true;
    unwind_table_ = FileUnwindTable::Read(
        elf_, *content_, [this] { return DebugFile(); }, cache_.get());
  }
  return unwind_table_ == nullptr ? nullptr : &unwind_table_->table();
}

std::optional<Address> ImageFile::AddressOf(uint64_t offset) const {
  for (const Part& part : parts_) {
    if (part.offset <= offset && offset - part.offset < part.size) {
      return offset - part.offset + part.address;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> ImageFile::OffsetOf(Address address) const {
  for (const Part& part : parts_) {
    if (part.address <= address && address - part.address < part.size) {
      return address - part.address + part.offset;
    }
  }
  return std::nullopt;
}

Bytes ImageFile::CodeAt(Address begin, uint64_t size) const {
  for (const Part& part : parts_) {
    if (begin < part.address || begin - part.address >= part.size) continue;
    const uint64_t skipped = begin - part.address;
    return Slice(content_->bytes(), part.offset + skipped, std::min(size, part.size - skipped))
        .value_or(Bytes());
  }
  return {};
}

}  // namespace xenoscope::symbolizer
