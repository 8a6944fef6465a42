#include "symbolizer/dwarf/dwarf_abbreviations.h"

#include <dwarf.h>

#include <algorithm>

namespace xenoscope::symbolizer {

// DWARF 5, 7.5.6; GNU's additions are of dwz and of split DWARF before version 5.
bool SkipOf(uint16_t form, DwarfEncoding encoding, DwarfSkip& skip) {
  const auto fixed = [&skip](uint32_t bytes) {
    skip = {DwarfSkip::kFixed, bytes};
    return true;
  };
  const auto of_kind = [&skip](DwarfSkip::Kind kind) {
    skip = {kind, 0};
    return true;
  };
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return fixed(0);
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return fixed(1);
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return fixed(2);
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return fixed(3);
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return fixed(4);
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return fixed(8);
    case DW_FORM_data16:
      return fixed(16);
    case DW_FORM_addr:
      return fixed(encoding.address_size);
    case DW_FORM_ref_addr:
      return fixed(encoding.version <= 2 ? encoding.address_size : encoding.offset_size);
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return fixed(encoding.offset_size);
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return of_kind(DwarfSkip::kLeb);
    case DW_FORM_block1:
      return of_kind(DwarfSkip::kBlock1);
    case DW_FORM_block2:
      return of_kind(DwarfSkip::kBlock2);
    case DW_FORM_block4:
      return of_kind(DwarfSkip::kBlock4);
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return of_kind(DwarfSkip::kBlockLeb);
    case DW_FORM_string:
      return of_kind(DwarfSkip::kText);
    case DW_FORM_indirect:
      return of_kind(DwarfSkip::kIndirect);
    default:
      return false;
  }
}

void Skip(const DwarfSkip& skip, DwarfEncoding encoding, DwarfCursor& cursor) {
  switch (skip.kind) {
    case DwarfSkip::kFixed:
      return cursor.Skip(skip.bytes);
    case DwarfSkip::kLeb:
      cursor.Uleb();
      return;
    case DwarfSkip::kBlock1:
      return cursor.Skip(cursor.U8());
    case DwarfSkip::kBlock2:
      return cursor.Skip(cursor.Take<uint16_t>());
    case DwarfSkip::kBlock4:
      return cursor.Skip(cursor.Take<uint32_t>());
    case DwarfSkip::kBlockLeb:
      return cursor.Skip(cursor.Uleb());
    case DwarfSkip::kText:
      cursor.Text();
      return;
    case DwarfSkip::kIndirect: {
      DwarfSkip real;
      const uint64_t form = cursor.Uleb();
      if (form > DW_FORM_GNU_strp_alt || form == DW_FORM_indirect ||
          !SkipOf(static_cast<uint16_t>(form), encoding, real)) {
        return cursor.Skip(cursor.left() + 1);  // damaged
      }
      return Skip(real, encoding, cursor);
    }
  }
}

DwarfAbbreviations::DwarfAbbreviations(Bytes section, uint64_t offset, DwarfEncoding encoding)
    : encoding_(encoding) {
  DwarfCursor cursor(section, offset);
  bool in_order = true;
  while (true) {
    DwarfAbbreviation abbreviation;
    abbreviation.code = cursor.Uleb();
    if (abbreviation.code == 0 || cursor.failed()) break;
    const uint64_t tag = cursor.Uleb();
    abbreviation.tag = tag > DW_TAG_hi_user ? 0 : static_cast<uint16_t>(tag);
    abbreviation.has_children = cursor.U8() != 0;
    abbreviation.first_attribute = static_cast<uint32_t>(attributes_.size());
    abbreviation.first_skip = static_cast<uint32_t>(skips_.size());
    bool known = true;
    while (known && AddAttribute(cursor, abbreviation)) {
      const DwarfAttribute& attribute = attributes_.back();
      DwarfSkip skip;
      known = SkipOf(attribute.form, encoding, skip);
      // Adjacent fixed sizes become one step.
      if (skip.kind == DwarfSkip::kFixed && abbreviation.skips > 0 &&
          skips_.back().kind == DwarfSkip::kFixed) {
        skips_.back().bytes += skip.bytes;
      } else if (skip.kind != DwarfSkip::kFixed || skip.bytes > 0) {
        skips_.push_back(skip);
        ++abbreviation.skips;
      }
    }
    if (!known || cursor.failed()) break;
    in_order = in_order && (table_.empty() || table_.back().code < abbreviation.code);
    table_.push_back(abbreviation);
  }
  if (!in_order) {
    std::stable_sort(table_.begin(), table_.end(),
                     [](const auto& a, const auto& b) { return a.code < b.code; });
  }
}

// Reads an attribute. False: it was the last one.
bool DwarfAbbreviations::AddAttribute(DwarfCursor& cursor, DwarfAbbreviation& abbreviation) {
  const uint64_t name = cursor.Uleb();
  const uint64_t form = cursor.Uleb();
  if (cursor.failed() || (name == 0 && form == 0)) return false;
  DwarfAttribute attribute;
  attribute.name = name > DW_AT_hi_user ? 0 : static_cast<uint16_t>(name);
  attribute.form = form > DW_FORM_GNU_strp_alt ? 0 : static_cast<uint16_t>(form);
  if (form == DW_FORM_implicit_const) attribute.implicit = cursor.Sleb();
  attributes_.push_back(attribute);
  ++abbreviation.attributes;
  return true;
}

const DwarfAbbreviation* DwarfAbbreviations::Search(uint64_t code) const {
  const auto found = std::lower_bound(
      table_.begin(), table_.end(), code,
      [](const DwarfAbbreviation& abbreviation, uint64_t c) { return abbreviation.code < c; });
  return found == table_.end() || found->code != code ? nullptr : &*found;
}

void DwarfAbbreviations::Skip(const DwarfAbbreviation& abbreviation, DwarfCursor& cursor) const {
  const DwarfSkip* skip = skips_.data() + abbreviation.first_skip;
  for (uint32_t i = 0; i < abbreviation.skips; ++i) {
    symbolizer::Skip(skip[i], encoding_, cursor);
  }
}

uint64_t DwarfAbbreviations::MemoryUsed() const {
  return table_.capacity() * sizeof(DwarfAbbreviation) +
         attributes_.capacity() * sizeof(DwarfAttribute) + skips_.capacity() * sizeof(DwarfSkip);
}

}  // namespace xenoscope::symbolizer
