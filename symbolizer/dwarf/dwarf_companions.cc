#include "symbolizer/dwarf/dwarf_companions.h"

#include <dwarf.h>
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace xenoscope::symbolizer {
namespace {

// Returns the offset of the first list in a section of a split file that is not in a package: the
// size of the header (DWARF 5, 7.26 and 7.28).
uint64_t TextOffsetsHeader(const DwarfEncoding& encoding) {
  if (encoding.version < 5) return 0;
  return encoding.offset_size == 8 ? 16 : 8;
}
uint64_t RangeListsHeader(const DwarfEncoding& encoding) {
  return encoding.offset_size == 8 ? 20 : 12;
}

// Returns the section of a package with this number (DWARF 5, 7.3.5.3); GNU's older numbers are the
// same for the sections used here.
std::optional<DwarfSections::Name> SectionOf(uint32_t number, uint32_t version) {
  switch (number) {
    case DW_SECT_INFO:
      return DwarfSections::kInfo;
    case DW_SECT_ABBREV:
      return DwarfSections::kAbbrev;
    case DW_SECT_STR_OFFSETS:
      return DwarfSections::kStrOffsets;
    case DW_SECT_RNGLISTS:
      if (version >= 5) return DwarfSections::kRngLists;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

const DwarfFile* DwarfCompanions::FindShared(const ElfFile& elf, WorkLimit& limit) {
  build_id_ = elf.BuildId();
  if (paths_.empty()) return nullptr;
  const AltLink link = AltLinkOf(elf);
  if (link.build_id.empty()) return nullptr;
  auto found = finder_.AltFileOf(link, paths_.front());
  if (found.ok()) {
    shared_content_ = std::move(found->content);
    const auto shared = ElfFile::OpenAny(shared_content_.bytes());
    auto sections = shared.ok() ? DwarfSections::Read(*shared, shared_content_.bytes())
                                : absl::StatusOr<DwarfSections>(shared.status());
    if (sections.ok()) {
      limit.Give(kStepsPerByte * sections->size());
      shared_ = std::make_unique<DwarfFile>(*std::move(sections), nullptr, limit);
      shared_id_ = link.build_id;
      return shared_.get();
    }
  }
  missing_.push_back(
      fmt::format("{}, build-id {}: without it functions that were inlined have no names (dwz)",
                  link.name, link.build_id));
  return nullptr;
}

bool DwarfCompanions::ReadIndex(const ElfFile& elf, File& file) {
  // The version has 2 bytes and 2 of padding; GNU's had 4 bytes.
  DwarfCursor cursor(elf.Section(".debug_cu_index"));
  const uint32_t version = cursor.Take<uint32_t>() & 0xffff;
  const uint64_t sections = cursor.Take<uint32_t>();
  const uint64_t units = cursor.Take<uint32_t>();
  const uint64_t slots = cursor.Take<uint32_t>();
  if (cursor.failed() || (version != 2 && version != 5) || sections == 0 ||
      slots * 12 + sections * 4 + units * sections * 8 > cursor.left()) {
    return false;
  }
  DwarfCursor rows = cursor;
  rows.Skip(slots * 8);
  DwarfCursor numbers = rows;
  numbers.Skip(slots * 4);
  std::vector<std::optional<DwarfSections::Name>> names;
  for (uint64_t i = 0; i < sections; ++i) {
    names.push_back(SectionOf(numbers.Take<uint32_t>(), version));
  }
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const auto id = cursor.Take<uint64_t>();
    const auto row = rows.Take<uint32_t>();
    if (row == 0 || row > units) continue;  // an empty slot
    DwarfCursor begins = numbers;
    begins.Skip((row - 1) * sections * 4);
    DwarfCursor sizes = numbers;
    sizes.Skip((units + row - 1) * sections * 4);
    std::vector<File::Part>& parts = file.parts[id];
    if (!parts.empty()) continue;
    for (const auto& name : names) {
      const auto begin = begins.Take<uint32_t>();
      const auto size = sizes.Take<uint32_t>();
      if (name) parts.push_back({*name, begin, size});
    }
  }
  return !file.parts.empty();
}

const DwarfCompanions::File* DwarfCompanions::Read(absl::StatusOr<FileContent> content,
                                                   const std::string& name, bool package,
                                                   WorkLimit& limit) {
  if (!content.ok()) return nullptr;
  const auto elf = ElfFile::OpenAny(content->bytes());
  if (!elf.ok()) return nullptr;
  auto file = std::make_unique<File>();
  auto sections = DwarfSections::Read(*elf, content->bytes(), DwarfSections::Kind::kSplit);
  if (!sections.ok() || (package && !ReadIndex(*elf, *file))) return nullptr;
  file->content = *std::move(content);
  file->sections = *std::move(sections);
  limit.Give(kStepsPerByte * file->sections.size());
  return files_.try_emplace(name, std::move(file)).first->second.get();
}

void DwarfCompanions::FindPackage(WorkLimit& limit) {
  looked_for_package_ = true;
  const std::string name = build_id_ + ".dwp";
  package_ = Read(finder_.OpenImage(name), name, true, limit);
  for (const std::string& path : paths_) {
    if (package_ == nullptr) package_ = Read(finder_.Open(path + ".dwp"), name, true, limit);
  }
}

const DwarfCompanions::File* DwarfCompanions::FindFile(const DwarfUnit& skeleton,
                                                       WorkLimit& limit) {
  if (!looked_for_package_) FindPackage(limit);
  if (package_ != nullptr && package_->parts.contains(skeleton.split_id)) return package_;
  const std::string name = fmt::format("{:016x}.dwo", skeleton.split_id);
  const auto known = files_.find(name);
  if (known != files_.end()) return known->second.get();
  // The name comes from the file itself: only names of split files are opened for it.
  if (!skeleton.split_name.ends_with(".dwo") && !skeleton.split_name.ends_with(".o")) {
    return nullptr;
  }
  const File* file = Read(finder_.OpenImage(name), name, false, limit);
  std::filesystem::path path(skeleton.split_name);
  if (path.is_relative()) path = std::filesystem::path(skeleton.directory) / path;
  if (file == nullptr) file = Read(finder_.Open(path.string()), name, false, limit);
  for (const std::string& beside : paths_) {
    if (file != nullptr) break;
    file =
        Read(finder_.Open((std::filesystem::path(beside).parent_path() / path.filename()).string()),
             name, false, limit);
  }
  if (file == nullptr) files_.try_emplace(name, nullptr);  // it is not looked up again
  return file;
}

std::unique_ptr<DwarfCompanions::SplitUnit> DwarfCompanions::FindSplit(const DwarfUnit& skeleton,
                                                                       const DwarfSections& whole,
                                                                       WorkLimit& limit) {
  if (paths_.empty() || skeleton.split_name.empty()) return nullptr;
  const File* file = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    file = FindFile(skeleton, limit);
  }
  const auto find = [&]() -> std::unique_ptr<SplitUnit> {
    if (file == nullptr) return nullptr;
    DwarfSections sections = DwarfSections::OfSplit(file->sections, whole);
    if (const auto parts = file->parts.find(skeleton.split_id); parts != file->parts.end()) {
      for (const File::Part& part : parts->second) {
        if (!sections.Narrow(part.section, part.begin, part.size)) return nullptr;
      }
    }
    auto split = std::make_unique<SplitUnit>(std::move(sections), limit);
    for (DwarfUnit& unit : split->file.units()) {
      if (unit.encoding.version >= 5 && unit.split_id != skeleton.split_id) continue;
      unit.addr_base = skeleton.addr_base;
      unit.low_pc = skeleton.low_pc;
      unit.ranges_base = skeleton.split_ranges_base;
      unit.str_offsets_base = TextOffsetsHeader(unit.encoding);
      unit.rnglists_base = RangeListsHeader(unit.encoding);
      DwarfExtent ignored;
      split->file.reader().ReadRoot(unit, limit, ignored);
      if (unit.split_id != skeleton.split_id || !unit.is_code) continue;
      split->unit = &unit;
      return split;
    }
    return nullptr;
  };
  auto split = find();
  if (split == nullptr) {
    const std::scoped_lock lock(mutex_);
    if (split_missing_++ == 0) first_split_missing_ = std::string(skeleton.split_name);
  }
  return split;
}

std::vector<CompanionFile> DwarfCompanions::Used() const {
  std::vector<CompanionFile> used;
  if (shared_) used.push_back({shared_id_ + ".debug", shared_content_.bytes()});
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, file] : files_) {
    if (file) used.push_back({name, file->content.bytes()});
  }
  return used;
}

std::vector<std::string> DwarfCompanions::Missing() const {
  std::vector<std::string> missing = missing_;
  const std::scoped_lock lock(mutex_);
  if (split_missing_ > 0) {
    missing.push_back(fmt::format(
        "{} and the like: without them {} units have no functions that were inlined (split DWARF)",
        first_split_missing_, split_missing_));
  }
  return missing;
}

}  // namespace xenoscope::symbolizer
