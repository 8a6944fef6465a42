#include "symbolizer/dwarf/dwarf_scopes.h"

#include <dwarf.h>

#include <utility>

namespace xenoscope::symbolizer {
namespace {

class ScopeWalk {
 public:
  ScopeWalk(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit)
      : reader_(reader), unit_(unit), limit_(limit) {}

  DwarfScopes Run() && {
    DwarfCursor cursor(reader_.sections().of(DwarfSections::kInfo).first(unit_.end), unit_.entries);
    std::vector<uint32_t> parents;  // scopes of the levels above, or kNone
    uint32_t scope = DwarfScope::kNone;
    while (!cursor.AtEnd()) {
      const uint64_t at = cursor.offset();
      const uint64_t code = cursor.Uleb();
      if (code == 0) {
        if (parents.empty()) break;
        scope = parents.back();
        parents.pop_back();
        if (parents.empty()) break;  // the unit's own entry has ended
        continue;
      }
      const DwarfAbbreviation* entry = unit_.abbreviations->Find(code);
      if (entry == nullptr || cursor.failed()) break;
      uint32_t inner = scope;
      if (entry->tag == DW_TAG_subprogram || entry->tag == DW_TAG_inlined_subroutine) {
        if (!limit_.Take(entry->attributes + 1)) break;
        inner = ReadScope(*entry, at, scope, cursor);
      } else {
        unit_.abbreviations->Skip(*entry, cursor);
      }
      if (!entry->has_children) {
        if (parents.empty()) break;
        continue;
      }
      parents.push_back(scope);
      scope = inner;
    }
    return std::move(result_);
  }

 private:
  // Returns the scope that holds the entry's children.
  uint32_t ReadScope(const DwarfAbbreviation& entry, uint64_t at, uint32_t around,
                     DwarfCursor& cursor) {
    const bool inlined = entry.tag == DW_TAG_inlined_subroutine;
    DwarfExtent extent;
    DwarfScope scope;
    scope.entry = at;
    for (const DwarfAttribute& attribute : unit_.abbreviations->AttributesOf(entry)) {
      switch (attribute.name) {
        case DW_AT_low_pc:
        case DW_AT_high_pc:
        case DW_AT_ranges:
          extent.Take(attribute.name, reader_.ReadValue(unit_, attribute, cursor));
          break;
        case DW_AT_call_file:
          scope.call_file =
              static_cast<uint32_t>(reader_.ReadValue(unit_, attribute, cursor).number);
          break;
        case DW_AT_call_line:
          scope.call_line =
              static_cast<uint32_t>(reader_.ReadValue(unit_, attribute, cursor).number);
          break;
        default: {
          DwarfSkip skip;
          if (SkipOf(attribute.form, unit_.encoding, skip)) Skip(skip, unit_.encoding, cursor);
        }
      }
    }
    ranges_.clear();
    reader_.AddRanges(unit_, extent, limit_, ranges_);
    if (ranges_.empty()) return inlined ? around : DwarfScope::kNone;
    if (inlined) scope.parent = around;
    const auto number = static_cast<uint32_t>(result_.scopes.size());
    result_.scopes.push_back(scope);
    for (const AddressRange& range : ranges_) {
      result_.extents.push_back({range.begin, range.end, number});
    }
    return number;
  }

  const DwarfReader& reader_;
  const DwarfUnit& unit_;
  WorkLimit& limit_;
  DwarfScopes result_;
  std::vector<AddressRange> ranges_;
};

}  // namespace

DwarfScopes ReadScopes(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit) {
  return ScopeWalk(reader, unit, limit).Run();
}

}  // namespace xenoscope::symbolizer
