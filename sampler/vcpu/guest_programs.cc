#include "sampler/vcpu/guest_programs.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace xenoscope::sampler {
namespace {

using namespace std::literals;

// The lowest address of a program (vm.mmap_min_addr), and the end of the lower half.
constexpr Address kProgramsBegin = 0x1'0000;
constexpr Address kProgramsEnd = Address{1} << 56;
// Limits of a file's headers, and of their notes; linkers make about ten and four.
constexpr int kMaxNotes = 16;
constexpr uint64_t kMaxNoteBytes = 1024;
constexpr std::string_view kOwner = "GNU\0"sv;

// The first bytes of ELF files of 64 bits, little-endian.
constexpr uint64_t kElfBegin = 0x00'0101'0246'4c45'7f;
constexpr uint64_t kElfBeginMask = 0xff'ffff'ffff'ffff;

Address PageOf(Address address) { return address - address % kFrameSize; }

uint64_t Aligned(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

bool GuestPrograms::File::Has(Address address) const {
  return std::ranges::any_of(
      code, [address](const Code& of) { return of.begin <= address && address < of.end; });
}

void GuestPrograms::Forget() {
  ++checks_;
  pages_left_ = kMaxPages;
  if (spaces_.size() >= kMaxSpaces) spaces_.clear();
}

uint16_t GuestPrograms::Find(DomainId domain, const VcpuContext& context,
                             std::span<const uint64_t> words, Tsc when, bool search,
                             recording::ProcessChunk& found) {
  pages_.Begin(domain, context, kMaxMaps);
  Space& space = spaces_[{domain.value, PageOf(context.page_tables)}];
  if (space.checked != checks_) {
    if (!IsStillThere(space)) space = {};
    space.without_file.clear();
    space.checked = checks_;
  }
  if (!search) return space.number;
  Budget budget;
  FindAt(context.address, when, space, budget, found);
  for (const Address address : words) FindAt(address, when, space, budget, found);
  return space.number;
}

void GuestPrograms::FindAt(Address address, Tsc when, Space& space, Budget& budget,
                           recording::ProcessChunk& found) {
  if (address < kProgramsBegin || address >= kProgramsEnd) return;
  const auto has = [address](const File& file) { return file.Has(address); };
  if (std::ranges::any_of(space.files, has)) return;
  if (budget.searches == 0 || budget.files == 0 || space.files.size() >= kMaxFilesOfSpace ||
      space.without_file.size() >= kMaxPagesWithoutFile ||
      !space.without_file.insert(PageOf(address)).second) {
    return;
  }
  const GuestPages::Translation at = pages_.At(PageOf(address));
  if (!at.present || !at.executable) return;
  --budget.searches;
  File file;
  if (!Search(address, file)) return;
  if (space.number == 0) {
    if (last_number_ == std::numeric_limits<uint16_t>::max()) return;
    space.number = ++last_number_;
  }
  --budget.files;
  AddTo(found, file, space.number, when);
  space.files.push_back(std::move(file));
}

void GuestPrograms::AddTo(recording::ProcessChunk& found, const File& file, uint16_t space,
                          Tsc when) {
  recording::ProcessEntry entry;
  entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kSpaceMap);
  entry.pid = space;
  entry.when = when.value;
  for (const File::Code& code : file.code) {
    recording::MapEntry map;
    map.address = code.begin;
    map.length = code.end - code.begin;
    map.offset = code.offset;
    map.build_id_size = file.build_id_size;
    std::ranges::copy(file.build_id, map.build_id.begin());
    found.Add(entry, &map, "");
  }
}

bool GuestPrograms::IsStillThere(const Space& space) {
  // A page that is not present now may be swapped out. If another process has the space, either
  // other bytes are there, or nothing is that was there before.
  bool any = space.files.empty();
  for (const File& file : space.files) {
    std::array<std::byte, sizeof file.build_id> id{};
    const auto now = std::span(id).first(file.build_id_size);
    if (!Copy(file.build_id_at, now)) continue;
    if (std::memcmp(now.data(), file.build_id.data(), now.size()) != 0) return false;
    any = true;
  }
  return any;
}

bool GuestPrograms::Search(Address address, File& file) {
  const Address lowest = address > kMaxDistance ? PageOf(address - kMaxDistance) : 0;
  // Linkers put the header before the code: in memory that is not executable, or, older ones and
  // in small files, in that of the code.
  enum class Try : uint8_t { kBeginOfData, kData, kBeginOfCode };
  for (const Try what : {Try::kBeginOfData, Try::kData, Try::kBeginOfCode}) {
    Address page = PageOf(address);
    GuestPages::Translation at = pages_.At(page);
    while (page > lowest && pages_left_ > 0) {
      --pages_left_;
      const Address below = page - kFrameSize;
      const GuestPages::Translation next = pages_.At(below);
      const bool begins = !next.present || next.executable != at.executable;
      const bool is_tried = at.present && at.executable == (what == Try::kBeginOfCode) &&
                            begins == (what != Try::kData);
      if (is_tried && Read(page, file)) return file.Has(address);
      page = next.present ? below : below - below % next.size;
      at = next;
    }
  }
  return false;
}

bool GuestPrograms::Read(Address page, File& file) {
  const std::optional<uint64_t> magic = pages_.Word(page);
  if (!magic || (*magic & kElfBeginMask) != kElfBegin) return false;
  std::array<std::byte, kFrameSize> bytes{};
  if (!Copy(page, bytes)) return false;
  const auto header = LoadUnchecked<Elf64_Ehdr>(bytes.data());
  const bool is_program = header.e_machine == EM_X86_64 &&
                          (header.e_type == ET_DYN || header.e_type == ET_EXEC) &&
                          header.e_phentsize == sizeof(Elf64_Phdr);
  const auto table =
      Slice(Bytes(bytes), header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (!is_program || !table) return false;
  std::vector<Elf64_Phdr> parts;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    parts.push_back(LoadUnchecked<Elf64_Phdr>(table->data() + i * sizeof(Elf64_Phdr)));
  }
  const auto first = std::ranges::find_if(parts, [](const Elf64_Phdr& part) {
    return part.p_type == PT_LOAD && part.p_offset < kFrameSize;
  });
  if (first == parts.end()) return false;
  const Address bias = page - (first->p_vaddr - first->p_offset);
  if (bias % kFrameSize != 0) return false;
  file = {};
  file.header = page;
  for (const Elf64_Phdr& part : parts) {
    const Address begin = part.p_vaddr + bias;
    const bool is_code = part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 &&
                         part.p_filesz > 0 && part.p_filesz <= kMaxDistance && begin < kProgramsEnd;
    if (is_code) file.code.push_back({begin, begin + part.p_filesz, part.p_offset});
  }
  return std::ranges::any_of(parts, [&](const Elf64_Phdr& part) {
    return part.p_type == PT_NOTE && ReadBuildId(part.p_vaddr + bias, part.p_filesz, file);
  });
}

bool GuestPrograms::ReadBuildId(Address notes, uint64_t size, File& file) {
  constexpr uint64_t kAlignment = 4;  // notes that are aligned to 8 are others
  if (notes % kAlignment != 0 || notes >= kProgramsEnd) return false;
  size = std::min(size, kMaxNoteBytes);
  uint64_t at = 0;
  for (int i = 0; i < kMaxNotes && at + sizeof(Elf64_Nhdr) + kOwner.size() <= size; ++i) {
    std::array<std::byte, sizeof(Elf64_Nhdr) + kOwner.size()> bytes{};
    if (!Copy(notes + at, bytes)) return false;
    const auto note = LoadUnchecked<Elf64_Nhdr>(bytes.data());
    const Bytes owner = Bytes(bytes).subspan(sizeof note);
    const uint64_t content = at + sizeof note + Aligned(note.n_namesz, kAlignment);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == kOwner.size() &&
        AsText(owner) == kOwner) {
      if (note.n_descsz == 0 || note.n_descsz > file.build_id.size()) return false;
      file.build_id_at = notes + content;
      file.build_id_size = static_cast<uint8_t>(note.n_descsz);
      return Copy(file.build_id_at,
                  std::as_writable_bytes(std::span(file.build_id)).first(note.n_descsz));
    }
    at = content + Aligned(note.n_descsz, kAlignment);
  }
  return false;
}

bool GuestPrograms::Copy(Address from, std::span<std::byte> to) {
  Address word_at = from - from % sizeof(uint64_t);
  size_t skipped = from - word_at;
  while (!to.empty()) {
    const std::optional<uint64_t> word = pages_.Word(word_at);
    if (!word) return false;
    const Bytes bytes = std::as_bytes(std::span(&*word, 1)).subspan(skipped);
    const size_t size = std::min(bytes.size(), to.size());
    std::memcpy(to.data(), bytes.data(), size);
    to = to.subspan(size);
    skipped = 0;
    word_at += sizeof(uint64_t);
  }
  return true;
}

}  // namespace xenoscope::sampler
