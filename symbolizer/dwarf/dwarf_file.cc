#include "symbolizer/dwarf/dwarf_file.h"

#include <dwarf.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/parallel.h"

namespace xenoscope::symbolizer {
namespace {

// Least number of tables for which a thread is worth its start of about 50 us.
constexpr size_t kTablesPerThread = 64;

}  // namespace

DwarfFile::DwarfFile(DwarfSections sections, const DwarfFile* shared, WorkLimit& limit)
    : sections_(std::move(sections)),
      shared_(shared),
      reader_(sections_, shared == nullptr ? Bytes() : shared->sections().of(DwarfSections::kStr)) {
  using Key = std::tuple<uint64_t, DwarfEncoding>;
  std::map<Key, uint32_t> numbers;
  std::vector<Key> keys;
  std::vector<uint32_t> table_of;
  units_ = ReadUnits(sections_);
  for (const DwarfUnit& unit : units_) {
    const Key key{unit.abbreviations_at, unit.encoding};
    const auto [found, is_new] = numbers.try_emplace(key, static_cast<uint32_t>(keys.size()));
    if (is_new) keys.push_back(key);
    table_of.push_back(found->second);
  }
  tables_.resize(keys.size());
  ForEachInParallel(keys.size(), kTablesPerThread, [&](size_t i) {
    if (limit.exhausted()) return;
    tables_[i] = DwarfAbbreviations(sections_.of(DwarfSections::kAbbrev), std::get<0>(keys[i]),
                                    std::get<1>(keys[i]));
    limit.Take(tables_[i].size());
  });
  for (size_t i = 0; i < units_.size(); ++i) units_[i].abbreviations = &tables_[table_of[i]];
}

std::string_view DwarfFile::NameOfEntry(uint64_t offset, WorkLimit& limit) const {
  constexpr int kMaxSteps = 16;
  std::string_view in_source;
  const DwarfFile* file = this;
  for (int step = 0; step < kMaxSteps && file != nullptr; ++step) {
    const auto after =
        std::upper_bound(file->units_.begin(), file->units_.end(), offset,
                         [](uint64_t o, const DwarfUnit& unit) { return o < unit.begin; });
    if (after == file->units_.begin()) break;
    const DwarfUnit& unit = *std::prev(after);
    if (offset < unit.entries || offset >= unit.end) break;
    DwarfCursor cursor(file->sections_.of(DwarfSections::kInfo).first(unit.end), offset);
    const DwarfAbbreviation* entry = unit.abbreviations->Find(cursor.Uleb());
    if (entry == nullptr || !limit.Take(entry->attributes + 1)) break;
    std::string_view linked;
    DwarfValue origin;
    for (const DwarfAttribute& attribute : unit.abbreviations->AttributesOf(*entry)) {
      const DwarfValue value = file->reader_.ReadValue(unit, attribute, cursor);
      if (attribute.name == DW_AT_linkage_name || attribute.name == DW_AT_MIPS_linkage_name) {
        linked = value.text;
      } else if (attribute.name == DW_AT_name && in_source.empty()) {
        in_source = value.text;
      } else if (attribute.name == DW_AT_abstract_origin || attribute.name == DW_AT_specification) {
        origin = value;
      }
    }
    if (!linked.empty()) return linked;
    if (origin.kind == DwarfValue::kSharedReference) {
      file = file->shared_;
    } else if (origin.kind != DwarfValue::kReference) {
      break;
    }
    offset = origin.number;
  }
  return in_source;
}

uint64_t DwarfFile::MemoryUsed() const {
  uint64_t used = sections_.MemoryUsed() + units_.capacity() * sizeof(DwarfUnit);
  for (const DwarfAbbreviations& table : tables_) used += table.MemoryUsed();
  return used;
}

}  // namespace xenoscope::symbolizer
