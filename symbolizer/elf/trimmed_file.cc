#include "symbolizer/elf/trimmed_file.h"

#include <gelf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "symbolizer/elf/elf_file.h"

namespace xenoscope::symbolizer {
namespace {

// The names NAME in .debug_NAME, .zdebug_NAME and .debug_NAME.dwo of sections that DwarfSections
// does not read.
constexpr std::string_view kUnread[] = {"aranges", "frame",    "gnu_pubnames", "gnu_pubtypes",
                                        "loc",     "loclists", "macinfo",      "macro",
                                        "names",   "pubnames", "pubtypes"};

bool IsUnread(std::string_view name) {
  for (const std::string_view prefix : {".debug_", ".zdebug_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    if (name.ends_with(".dwo")) name.remove_suffix(4);
    return std::ranges::find(kUnread, name) != std::end(kUnread);
  }
  return false;
}

// Returns whether the section is loaded to run, or to be read while running. PLTs count as not
// loaded: their code is needed for names.
bool IsLoaded(const GElf_Shdr& header, std::string_view name) {
  return header.sh_type == SHT_PROGBITS && (header.sh_flags & SHF_ALLOC) != 0 &&
         !name.starts_with(".plt") && name != ".iplt";
}

// A half-open range of bytes of the file.
struct Part {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Returns the same bytes as parts that do not overlap: a hostile file may claim that each of its
// sections is the whole file.
std::vector<Part> MergeOverlapping(std::vector<Part> parts) {
  std::ranges::sort(parts, {}, &Part::begin);
  std::vector<Part> apart;
  for (const Part& part : parts) {
    if (!apart.empty() && part.begin <= apart.back().end) {
      apart.back().end = std::max(apart.back().end, part.end);
    } else {
      apart.push_back(part);
    }
  }
  return apart;
}

class Parts {
 public:
  explicit Parts(uint64_t size) : size_(size) {}
  // Adds a range; what does not lie in the file is left out.
  void Add(uint64_t begin, uint64_t length) {
    if (begin <= size_ && length <= size_ - begin) parts_.push_back({begin, begin + length});
  }
  std::vector<Part> Take() { return MergeOverlapping(std::move(parts_)); }

 private:
  uint64_t size_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<std::byte> TrimmedFile(Bytes file, std::span<const Bytes> code) {
  std::vector<std::byte> trimmed(file.begin(), file.end());
  const auto elf = ElfFile::OpenAny(file);
  GElf_Ehdr header;
  size_t names = 0;
  size_t sections = 0;
  if (!elf.ok() || gelf_getehdr(elf->get(), &header) == nullptr ||
      elf_getshdrstrndx(elf->get(), &names) != 0 || elf_getshdrnum(elf->get(), &sections) != 0) {
    return trimmed;
  }
  Parts kept(file.size());
  Parts dropped(file.size());
  kept.Add(0, header.e_ehsize);
  kept.Add(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  kept.Add(header.e_shoff, uint64_t{sections} * header.e_shentsize);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf->get(), section)) != nullptr;) {
    GElf_Shdr of;
    if (gelf_getshdr(section, &of) == nullptr || of.sh_type == SHT_NOBITS) continue;
    const char* named = elf_strptr(elf->get(), names, of.sh_name);
    const std::string_view name = named == nullptr ? "" : named;
    (IsLoaded(of, name) || IsUnread(name) ? dropped : kept).Add(of.sh_offset, of.sh_size);
  }
  for (const Bytes part : code) {
    const std::less_equal<> before;
    if (!before(file.data(), part.data()) ||
        !before(part.data() + part.size(), file.data() + file.size())) {
      continue;  // it is of another file
    }
    kept.Add(static_cast<uint64_t>(part.data() - file.data()), part.size());
  }
  for (const auto& [begin, end] : dropped.Take()) {
    std::memset(trimmed.data() + begin, 0, end - begin);
  }
  // Where the two overlap, the needed bytes stay.
  for (const auto& [begin, end] : kept.Take()) {
    std::memcpy(trimmed.data() + begin, file.data() + begin, end - begin);
  }
  return trimmed;
}

}  // namespace xenoscope::symbolizer
