#include "symbolizer/dwarf/dwarf_sections.h"

#include <gelf.h>
#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/parallel.h"
#include "symbolizer/disjoint_ranges.h"
#include "symbolizer/elf/object_sections.h"

namespace xenoscope::symbolizer {
namespace {

constexpr std::array<std::string_view, DwarfSections::kCount> kNames = {
    ".debug_info",   ".debug_abbrev",   ".debug_line", ".debug_str",         ".debug_line_str",
    ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets", ".debug_frame"};

constexpr std::string_view kSplitSuffix = ".dwo";

// Limit of the growth of sections by decompression, all together: real ones grow to 3 to 7 times
// their size.
constexpr uint64_t kGrowth = 12;
constexpr uint64_t kAlwaysAllowed = uint64_t{16} << 20;

constexpr uint32_t kZlib = 1;  // ELFCOMPRESS_ZLIB
constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, newer than this libelf

// The compressed form of GNU's tools before SHF_COMPRESSED: sections .zdebug_NAME with "ZLIB", the
// size as 8 big-endian bytes, and the compressed bytes.
constexpr std::string_view kZdebugPrefix = ".zdebug_";
constexpr std::string_view kZdebugMagic = "ZLIB";

// Elf64_Chdr or Elf32_Chdr, which comes before the compressed bytes.
struct CompressionHeader {
  uint32_t type = 0;
  uint64_t size = 0;
  Bytes content;
};

absl::StatusOr<CompressionHeader> HeaderOf(Bytes section, bool is_64_bit) {
  const auto type = Load<uint32_t>(section, 0);
  const size_t length = is_64_bit ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
  if (!type || section.size() < length) return InvalidError("it is shorter than its header");
  CompressionHeader header;
  header.type = *type;
  header.size = is_64_bit ? LoadUnchecked<uint64_t>(section.data() + offsetof(Elf64_Chdr, ch_size))
                          : LoadUnchecked<uint32_t>(section.data() + offsetof(Elf32_Chdr, ch_size));
  header.content = section.subspan(length);
  return header;
}

absl::StatusOr<CompressionHeader> OldHeaderOf(Bytes section) {
  const auto size = Load<uint64_t>(section, kZdebugMagic.size());
  if (!size || !AsText(section).starts_with(kZdebugMagic)) {
    return InvalidError("it does not begin with {} and a size", kZdebugMagic);
  }
  return CompressionHeader{kZlib, __builtin_bswap64(*size),
                           section.subspan(kZdebugMagic.size() + sizeof *size)};
}

absl::Status Decompress(const CompressionHeader& header, std::byte* into) {
  if (header.type == kZlib) {
    const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
        decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
    if (!decompressor) return ExhaustedError("no memory to decompress");
    if (libdeflate_zlib_decompress(decompressor.get(), header.content.data(), header.content.size(),
                                   into, header.size, nullptr) != LIBDEFLATE_SUCCESS) {
      return InvalidError("its compressed bytes are damaged");
    }
    return absl::OkStatus();
  }
  const size_t got =
      ZSTD_decompress(into, header.size, header.content.data(), header.content.size());
  if (ZSTD_isError(got) != 0 || got != header.size) {
    return InvalidError("its compressed bytes are damaged");
  }
  return absl::OkStatus();
}

// Returns the number of the section with this name in the file; nothing for a section that is not
// read. The name of an old one has the prefix ".zdebug_".
std::optional<size_t> NumberOf(std::string_view name, bool is_old, DwarfSections::Kind kind) {
  std::string plain(name);
  if (is_old) plain.erase(1, 1);  // the z
  if (kind == DwarfSections::Kind::kSplit) {
    if (!plain.ends_with(kSplitSuffix)) return std::nullopt;
    plain.resize(plain.size() - kSplitSuffix.size());
  }
  const auto known = std::find(kNames.begin(), kNames.end(), plain);
  const bool is_frame = known == kNames.begin() + DwarfSections::kFrame;
  if (known == kNames.end() || is_frame != (kind == DwarfSections::Kind::kFrames)) {
    return std::nullopt;
  }
  return static_cast<size_t>(known - kNames.begin());
}

// Returns the header if the section `name` can be decompressed to at most `allowed` bytes.
absl::StatusOr<CompressionHeader> CheckedHeaderOf(std::string_view name,
                                                  absl::StatusOr<CompressionHeader> header,
                                                  uint64_t allowed) {
  if (!header.ok()) return InContext(header.status(), name);
  if (header->type != kZlib && header->type != kZstd) {
    return InvalidError("its section {} is compressed in an unknown way ({})", name, header->type);
  }
  if (header->size > allowed) {
    return ExhaustedError("its section {} would be {} bytes, which is too large", name,
                          header->size);
  }
  return header;
}

}  // namespace

absl::StatusOr<DwarfSections> DwarfSections::Read(const ElfFile& file, Bytes bytes, Kind kind) {
  DwarfSections sections;
  size_t names = 0;
  GElf_Ehdr elf_header;
  if (elf_getshdrstrndx(file.get(), &names) != 0 ||
      gelf_getehdr(file.get(), &elf_header) == nullptr) {
    return InvalidError("its section headers are damaged");
  }
  const bool is_64_bit = elf_header.e_ident[EI_CLASS] == ELFCLASS64;

  const ObjectSections objects(file, bytes);

  std::array<CompressionHeader, kCount> compressed;
  std::array<size_t, kCount> numbers{};  // of the sections in the file
  uint64_t allowed = kAlwaysAllowed + kGrowth * bytes.size();
  Address text_begin = kLastAddress;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file.get(), section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if ((header.sh_flags & SHF_EXECINSTR) != 0 && header.sh_addr != 0) {
      text_begin = std::min<Address>(text_begin, header.sh_addr);
    }
    const char* name = elf_strptr(file.get(), names, header.sh_name);
    if (name == nullptr || header.sh_type == SHT_NOBITS) continue;
    const bool is_old = std::string_view(name).starts_with(kZdebugPrefix);
    const std::optional<size_t> number = NumberOf(name, is_old, kind);
    if (!number) continue;
    numbers[*number] = elf_ndxscn(section);
    const auto content = Slice(bytes, header.sh_offset, header.sh_size);
    if (!content) return InvalidError("its section {} reaches beyond its end", name);
    if (!is_old && (header.sh_flags & SHF_COMPRESSED) == 0) {
      sections.sections_[*number] = *content;
      continue;
    }
    XENOSCOPE_ASSIGN_OR_RETURN(
        compressed[*number],
        CheckedHeaderOf(name, is_old ? OldHeaderOf(*content) : HeaderOf(*content, is_64_bit),
                        allowed));
    allowed -= compressed[*number].size;
  }
  if (objects.text_begin() != 0) text_begin = objects.text_begin();
  sections.text_begin_ = text_begin == kLastAddress ? 1 : text_begin;

  std::array<absl::Status, kCount> results;
  ForEachInParallel(kCount, 1, [&](size_t i) {
    if (compressed[i].size == 0) return;
    sections.decompressed_[i] = std::make_unique_for_overwrite<std::byte[]>(compressed[i].size);
    results[i] = Decompress(compressed[i], sections.decompressed_[i].get());
  });
  for (size_t i = 0; i < kCount; ++i) {
    if (!results[i].ok()) return InContext(results[i], kNames[i]);
    if (compressed[i].size == 0) continue;
    sections.sections_[i] = {sections.decompressed_[i].get(), compressed[i].size};
    sections.memory_used_ += compressed[i].size;
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (!objects.HasRelocations(numbers[i])) continue;
    const absl::Status relocated = sections.Relocate(objects, numbers[i], static_cast<Name>(i));
    if (!relocated.ok()) return InContext(relocated, kNames[i]);
  }
  if (kind == Kind::kFrames) {
    if (sections.of(kFrame).empty()) return NotFoundError("it has no .debug_frame");
    return sections;
  }
  if (sections.of(kInfo).empty() || sections.of(kAbbrev).empty()) {
    return NotFoundError("it has no debug information");
  }
  return sections;
}

absl::Status DwarfSections::Relocate(const ObjectSections& objects, size_t number, Name name) {
  const Bytes content = sections_[name];
  if (content.empty()) return absl::OkStatus();
  if (decompressed_[name] == nullptr) {
    decompressed_[name] = std::make_unique_for_overwrite<std::byte[]>(content.size());
    std::ranges::copy(content, decompressed_[name].get());
    sections_[name] = {decompressed_[name].get(), content.size()};
    memory_used_ += content.size();
  }
  return objects.Relocate(number, {decompressed_[name].get(), content.size()});
}

DwarfSections DwarfSections::OfSplit(const DwarfSections& split, const DwarfSections& whole) {
  DwarfSections sections;
  sections.sections_ = split.sections_;
  sections.sections_[kAddr] = whole.of(kAddr);
  sections.sections_[kRanges] = whole.of(kRanges);
  sections.text_begin_ = whole.text_begin_;
  return sections;
}

bool DwarfSections::Narrow(Name name, uint64_t begin, uint64_t size) {
  const auto part = Slice(sections_[name], begin, size);
  if (part) sections_[name] = *part;
  return part.has_value();
}

uint64_t DwarfSections::size() const {
  uint64_t size = 0;
  for (const Bytes section : sections_) size += section.size();
  return size;
}

}  // namespace xenoscope::symbolizer
