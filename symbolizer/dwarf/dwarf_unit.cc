#include "symbolizer/dwarf/dwarf_unit.h"

#include <dwarf.h>

namespace xenoscope::symbolizer {
namespace {

constexpr uint32_t k64Bit = 0xffffffff;  // in place of a length: a 64-bit length follows

}  // namespace

std::vector<DwarfUnit> ReadUnits(const DwarfSections& sections) {
  std::vector<DwarfUnit> units;
  const Bytes info = sections.of(DwarfSections::kInfo);
  uint64_t at = 0;
  while (at < info.size()) {
    DwarfCursor cursor(info, at);
    DwarfUnit unit;
    unit.begin = at;
    uint64_t length = cursor.Take<uint32_t>();
    unit.encoding.offset_size = length == k64Bit ? 8 : 4;
    if (length == k64Bit) length = cursor.Take<uint64_t>();
    if (cursor.failed() || length > cursor.left()) break;
    unit.end = cursor.offset() + length;
    at = unit.end;
    unit.encoding.version = cursor.Take<uint16_t>();
    uint8_t type = DW_UT_compile;
    if (unit.encoding.version >= 5) {
      type = cursor.U8();
      unit.encoding.address_size = cursor.U8();
      unit.abbreviations_at = cursor.Unsigned(unit.encoding.offset_size);
      if (type == DW_UT_skeleton || type == DW_UT_split_compile) {
        unit.split_id = cursor.Take<uint64_t>();
      }
    } else {
      unit.abbreviations_at = cursor.Unsigned(unit.encoding.offset_size);
      unit.encoding.address_size = cursor.U8();
    }
    unit.entries = cursor.offset();
    const bool readable = unit.encoding.version >= 2 && unit.encoding.version <= 5 &&
                          (unit.encoding.address_size == 4 || unit.encoding.address_size == 8) &&
                          unit.entries < unit.end;
    if (readable && type != DW_UT_type && type != DW_UT_split_type) units.push_back(unit);
  }
  return units;
}

void DwarfExtent::Take(uint16_t attribute, const DwarfValue& value) {
  if (attribute == DW_AT_low_pc) low = value;
  if (attribute == DW_AT_high_pc) high = value;
  if (attribute == DW_AT_ranges) ranges = value;
}

DwarfValue DwarfReader::ReadValue(const DwarfUnit& unit, const DwarfAttribute& attribute,
                                  DwarfCursor& cursor) const {
  if (attribute.form != DW_FORM_indirect) {
    return ReadForm(unit, attribute.form, attribute.implicit, cursor);
  }
  const uint64_t form = cursor.Uleb();
  DwarfSkip skip;
  if (form > DW_FORM_GNU_strp_alt || form == DW_FORM_indirect ||
      !SkipOf(static_cast<uint16_t>(form), unit.encoding, skip)) {
    cursor.Skip(cursor.left() + 1);  // damaged
    return {};
  }
  return ReadForm(unit, static_cast<uint16_t>(form), 0, cursor);
}

DwarfValue DwarfReader::ReadForm(const DwarfUnit& unit, uint16_t form, int64_t implicit,
                                 DwarfCursor& cursor) const {
  const auto text = [](std::string_view found) { return DwarfValue{DwarfValue::kText, 0, found}; };
  const auto number = [](uint64_t value) { return DwarfValue{DwarfValue::kNumber, value}; };
  const auto in_unit = [&unit](uint64_t offset) {
    return DwarfValue{DwarfValue::kReference, unit.begin + offset};
  };
  const auto address = [](Address value) { return DwarfValue{DwarfValue::kAddress, value}; };
  const unsigned offset_size = unit.encoding.offset_size;
  switch (form) {
    case DW_FORM_addr:
      return address(cursor.Unsigned(unit.encoding.address_size));
    case DW_FORM_addrx:
    case DW_FORM_GNU_addr_index:
      return address(IndexedAddress(unit, cursor.Uleb()));
    case DW_FORM_addrx1:
      return address(IndexedAddress(unit, cursor.U8()));
    case DW_FORM_addrx2:
      return address(IndexedAddress(unit, cursor.Unsigned(2)));
    case DW_FORM_addrx3:
      return address(IndexedAddress(unit, cursor.Unsigned(3)));
    case DW_FORM_addrx4:
      return address(IndexedAddress(unit, cursor.Unsigned(4)));
    case DW_FORM_data1:
    case DW_FORM_flag:
      return number(cursor.U8());
    case DW_FORM_data2:
      return number(cursor.Unsigned(2));
    case DW_FORM_data4:
      return number(cursor.Unsigned(4));
    case DW_FORM_data8:
      return number(cursor.Unsigned(8));
    case DW_FORM_udata:
      return number(cursor.Uleb());
    case DW_FORM_sdata:
      return number(static_cast<uint64_t>(cursor.Sleb()));
    case DW_FORM_implicit_const:
      return number(static_cast<uint64_t>(implicit));
    case DW_FORM_flag_present:
      return number(1);
    case DW_FORM_sec_offset:
      return number(cursor.Unsigned(offset_size));
    case DW_FORM_rnglistx:
      return {DwarfValue::kRangeIndex, cursor.Uleb()};
    case DW_FORM_string:
      return text(cursor.Text());
    case DW_FORM_strp:
      return text(TextAt(sections_.of(DwarfSections::kStr), cursor.Unsigned(offset_size)));
    case DW_FORM_line_strp:
      return text(TextAt(sections_.of(DwarfSections::kLineStr), cursor.Unsigned(offset_size)));
    case DW_FORM_strx:
    case DW_FORM_GNU_str_index:
      return text(IndexedText(unit, cursor.Uleb()));
    case DW_FORM_strx1:
      return text(IndexedText(unit, cursor.U8()));
    case DW_FORM_strx2:
      return text(IndexedText(unit, cursor.Unsigned(2)));
    case DW_FORM_strx3:
      return text(IndexedText(unit, cursor.Unsigned(3)));
    case DW_FORM_strx4:
      return text(IndexedText(unit, cursor.Unsigned(4)));
    case DW_FORM_ref1:
      return in_unit(cursor.U8());
    case DW_FORM_ref2:
      return in_unit(cursor.Unsigned(2));
    case DW_FORM_ref4:
      return in_unit(cursor.Unsigned(4));
    case DW_FORM_ref8:
      return in_unit(cursor.Unsigned(8));
    case DW_FORM_ref_udata:
      return in_unit(cursor.Uleb());
    case DW_FORM_ref_addr:
      return {
          DwarfValue::kReference,
          cursor.Unsigned(unit.encoding.version <= 2 ? unit.encoding.address_size : offset_size)};
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
      return text(TextAt(shared_texts_, cursor.Unsigned(offset_size)));
    case DW_FORM_GNU_ref_alt:
      return {DwarfValue::kSharedReference, cursor.Unsigned(offset_size)};
    case DW_FORM_ref_sup4:
      return {DwarfValue::kSharedReference, cursor.Unsigned(4)};
    case DW_FORM_ref_sup8:
      return {DwarfValue::kSharedReference, cursor.Unsigned(8)};
    default: {
      DwarfSkip skip;
      if (SkipOf(form, unit.encoding, skip)) Skip(skip, unit.encoding, cursor);
      return {};
    }
  }
}

std::string_view DwarfReader::IndexedText(const DwarfUnit& unit, uint64_t index) const {
  const unsigned size = unit.encoding.offset_size;
  const Bytes offsets = sections_.of(DwarfSections::kStrOffsets);
  if (index > offsets.size()) return {};
  DwarfCursor cursor(offsets, unit.str_offsets_base + index * size);
  const uint64_t offset = cursor.Unsigned(size);
  return cursor.failed() ? std::string_view() : TextAt(sections_.of(DwarfSections::kStr), offset);
}

Address DwarfReader::IndexedAddress(const DwarfUnit& unit, uint64_t index) const {
  const unsigned size = unit.encoding.address_size;
  const Bytes addresses = sections_.of(DwarfSections::kAddr);
  if (index > addresses.size()) return 0;
  DwarfCursor cursor(addresses, unit.addr_base + index * size);
  return cursor.Unsigned(size);
}

void DwarfReader::ReadRoot(DwarfUnit& unit, WorkLimit& limit, DwarfExtent& extent) const {
  const Bytes info = sections_.of(DwarfSections::kInfo).first(unit.end);
  const auto for_each = [&](auto use) {
    DwarfCursor cursor(info, unit.entries);
    const DwarfAbbreviation* root = unit.abbreviations->Find(cursor.Uleb());
    if (root == nullptr || !limit.Take(root->attributes)) return;
    unit.is_code = root->tag == DW_TAG_compile_unit || root->tag == DW_TAG_skeleton_unit;
    for (const DwarfAttribute& attribute : unit.abbreviations->AttributesOf(*root)) {
      use(attribute.name, ReadValue(unit, attribute, cursor));
    }
  };
  // Bases come first: other attributes are indexes relative to them.
  for_each([&unit](uint16_t name, const DwarfValue& value) {
    if (name == DW_AT_str_offsets_base) unit.str_offsets_base = value.number;
    if (name == DW_AT_addr_base || name == DW_AT_GNU_addr_base) unit.addr_base = value.number;
    if (name == DW_AT_rnglists_base) unit.rnglists_base = value.number;
    if (name == DW_AT_GNU_ranges_base) unit.split_ranges_base = value.number;
    if (name == DW_AT_GNU_dwo_id) unit.split_id = value.number;
  });
  for_each([&unit, &extent](uint16_t name, const DwarfValue& value) {
    extent.Take(name, value);
    if (name == DW_AT_stmt_list && value.kind == DwarfValue::kNumber) {
      unit.line_program = value.number;
    }
    if (name == DW_AT_comp_dir) unit.directory = value.text;
    if (name == DW_AT_dwo_name || name == DW_AT_GNU_dwo_name) unit.split_name = value.text;
    if (name == DW_AT_low_pc) unit.low_pc = value.number;
  });
}

void DwarfReader::Add(AddressRange range, std::vector<AddressRange>& ranges) const {
  if (range.begin >= sections_.text_begin() && range.begin < range.end) ranges.push_back(range);
}

void DwarfReader::AddRanges(const DwarfUnit& unit, const DwarfExtent& extent, WorkLimit& limit,
                            std::vector<AddressRange>& ranges) const {
  if (extent.ranges.kind == DwarfValue::kNumber) {
    return unit.encoding.version >= 5
               ? AddListedRanges(unit, extent.ranges.number, limit, ranges)
               : AddOldRanges(unit, unit.ranges_base + extent.ranges.number, limit, ranges);
  }
  if (extent.ranges.kind == DwarfValue::kRangeIndex) {
    const unsigned size = unit.encoding.offset_size;
    const Bytes lists = sections_.of(DwarfSections::kRngLists);
    if (extent.ranges.number > lists.size()) return;
    DwarfCursor cursor(lists, unit.rnglists_base + extent.ranges.number * size);
    const uint64_t offset = cursor.Unsigned(size);
    if (!cursor.failed()) AddListedRanges(unit, unit.rnglists_base + offset, limit, ranges);
    return;
  }
  if (extent.low.kind != DwarfValue::kAddress) return;
  const Address begin = extent.low.number;
  if (extent.high.kind == DwarfValue::kAddress) Add({begin, extent.high.number}, ranges);
  if (extent.high.kind == DwarfValue::kNumber) Add({begin, begin + extent.high.number}, ranges);
}

// Appends ranges of .debug_ranges (DWARF 4, 2.17.3).
void DwarfReader::AddOldRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                               std::vector<AddressRange>& ranges) const {
  const unsigned size = unit.encoding.address_size;
  const Address all_ones = size == 8 ? ~Address{0} : 0xffffffff;
  DwarfCursor cursor(sections_.of(DwarfSections::kRanges), offset);
  Address base = unit.low_pc;
  while (limit.Take()) {
    const Address begin = cursor.Unsigned(size);
    const Address end = cursor.Unsigned(size);
    if (cursor.failed() || (begin == 0 && end == 0)) return;
    if (begin == all_ones) {
      base = end;
    } else {
      Add({base + begin, base + end}, ranges);
    }
  }
}

// Appends ranges of .debug_rnglists (DWARF 5, 2.17.3).
void DwarfReader::AddListedRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                                  std::vector<AddressRange>& ranges) const {
  const unsigned size = unit.encoding.address_size;
  DwarfCursor cursor(sections_.of(DwarfSections::kRngLists), offset);
  Address base = unit.low_pc;
  while (!cursor.failed() && limit.Take()) {
    Address begin = 0;
    Address end = 0;
    switch (cursor.U8()) {
      case DW_RLE_end_of_list:
        return;
      case DW_RLE_base_addressx:
        base = IndexedAddress(unit, cursor.Uleb());
        continue;
      case DW_RLE_startx_endx:
        begin = IndexedAddress(unit, cursor.Uleb());
        end = IndexedAddress(unit, cursor.Uleb());
        break;
      case DW_RLE_startx_length:
        begin = IndexedAddress(unit, cursor.Uleb());
        end = begin + cursor.Uleb();
        break;
      case DW_RLE_offset_pair:
        begin = base + cursor.Uleb();
        end = base + cursor.Uleb();
        break;
      case DW_RLE_base_address:
        base = cursor.Unsigned(size);
        continue;
      case DW_RLE_start_end:
        begin = cursor.Unsigned(size);
        end = cursor.Unsigned(size);
        break;
      case DW_RLE_start_length:
        begin = cursor.Unsigned(size);
        end = begin + cursor.Uleb();
        break;
      default:
        return;  // damaged
    }
    if (!cursor.failed()) Add({begin, end}, ranges);
  }
}

}  // namespace xenoscope::symbolizer
