#include "symbolizer/dwarf/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

namespace xenoscope::symbolizer {

class LineProgram {
 public:
  LineProgram(const DwarfReader& reader, const DwarfUnit& unit) : reader_(reader), unit_(unit) {}

  DwarfLines Run(WorkLimit& limit) && {
    lines_.compiled_in_ = unit_.directory;
    const Bytes section = reader_.sections().of(DwarfSections::kLine);
    DwarfCursor whole(section, unit_.line_program.value_or(section.size()));
    uint64_t length = whole.Take<uint32_t>();
    unit_.encoding.offset_size = length == 0xffffffff ? 8 : 4;
    if (length == 0xffffffff) length = whole.Take<uint64_t>();
    if (whole.failed() || length > whole.left() || !limit.Take(length)) return std::move(lines_);
    DwarfCursor cursor(section.first(whole.offset() + length), whole.offset());
    if (ReadHeader(cursor)) Execute(cursor);
    SortRows();
    return std::move(lines_);
  }

 private:
  struct AddressedRow {
    Address address = 0;
    DwarfLines::Row row;
    bool IsEnd() const { return row.file == DwarfLines::Row::kNoFile; }
  };

  // Reads the header, and leaves the cursor at the first instruction. False: it cannot be read.
  bool ReadHeader(DwarfCursor& cursor) {
    unit_.encoding.version = cursor.Take<uint16_t>();
    if (unit_.encoding.version < 2 || unit_.encoding.version > 5) return false;
    if (unit_.encoding.version >= 5) {
      const uint8_t address_size = cursor.U8();
      if (address_size != 4 && address_size != 8) return false;
      unit_.encoding.address_size = address_size;
      cursor.U8();  // the size of segment selectors
    }
    const uint64_t header_length = cursor.Unsigned(unit_.encoding.offset_size);
    if (cursor.failed() || header_length > cursor.left()) return false;
    const uint64_t program = cursor.offset() + header_length;
    shortest_ = cursor.U8();
    if (unit_.encoding.version >= 4) cursor.U8();  // operations of an instruction: 1 on x86
    cursor.U8();                                   // whether rows are statements at first
    const int line_base = cursor.U8();             // a signed byte
    line_base_ = line_base < 128 ? line_base : line_base - 256;
    line_range_ = cursor.U8();
    opcode_base_ = cursor.U8();
    for (unsigned opcode = 1; opcode < opcode_base_; ++opcode) operands_[opcode] = cursor.U8();
    if (unit_.encoding.version >= 5) {
      ReadTables(cursor);
    } else {
      ReadOldTables(cursor);
    }
    if (cursor.failed() || line_range_ == 0 || cursor.offset() > program) return false;
    cursor.Skip(program - cursor.offset());
    return true;
  }

  void ReadOldTables(DwarfCursor& cursor) {
    lines_.directories_.emplace_back();  // number 0 is the compiler's working directory
    while (true) {
      const std::string_view directory = cursor.Text();
      if (directory.empty()) break;
      lines_.directories_.push_back(directory);
    }
    lines_.files_.emplace_back();  // numbers begin at 1
    while (AddOldFile(cursor)) {
    }
  }

  bool AddOldFile(DwarfCursor& cursor) {
    const std::string_view name = cursor.Text();
    if (name.empty()) return false;
    const uint64_t directory = cursor.Uleb();
    cursor.Uleb();  // when it was modified
    cursor.Uleb();  // its length
    lines_.files_.push_back({directory, name});
    return true;
  }

  void ReadTables(DwarfCursor& cursor) {
    ForEachOfTable(cursor, [this](const DwarfLines::File& entry) {
      lines_.directories_.push_back(entry.name);
    });
    ForEachOfTable(cursor,
                   [this](const DwarfLines::File& entry) { lines_.files_.push_back(entry); });
  }

  template <typename Use>
  void ForEachOfTable(DwarfCursor& cursor, Use use) {
    std::vector<DwarfAttribute> format(cursor.U8());
    for (DwarfAttribute& field : format) {
      field.name = static_cast<uint16_t>(std::min<uint64_t>(cursor.Uleb(), 0xffff));
      field.form = static_cast<uint16_t>(std::min<uint64_t>(cursor.Uleb(), 0xffff));
    }
    const uint64_t count = cursor.Uleb();
    for (uint64_t i = 0; i < count && !cursor.failed(); ++i) {
      const uint64_t before = cursor.offset();
      DwarfLines::File entry;
      for (const DwarfAttribute& field : format) {
        const DwarfValue value = reader_.ReadValue(unit_, field, cursor);
        if (field.name == DW_LNCT_path) entry.name = value.text;
        if (field.name == DW_LNCT_directory_index) entry.directory = value.number;
      }
      // Endless: an empty entry.
      if (cursor.offset() == before) return cursor.Skip(cursor.left() + 1);
      use(entry);
    }
  }

  void Execute(DwarfCursor& cursor) {
    Reset();
    while (!cursor.AtEnd()) {
      const uint8_t opcode = cursor.U8();
      if (opcode >= opcode_base_) {
        const unsigned adjusted = opcode - opcode_base_;
        Advance(adjusted / line_range_);
        line_ += static_cast<uint32_t>(line_base_ + static_cast<int>(adjusted % line_range_));
        AddRow();
      } else if (opcode == 0) {
        ExecuteExtended(cursor);
      } else {
        ExecuteStandard(opcode, cursor);
      }
    }
  }

  void ExecuteStandard(uint8_t opcode, DwarfCursor& cursor) {
    switch (opcode) {
      case DW_LNS_copy:
        return AddRow();
      case DW_LNS_advance_pc:
        return Advance(cursor.Uleb());
      case DW_LNS_advance_line:
        line_ += static_cast<uint32_t>(cursor.Sleb());
        return;
      case DW_LNS_set_file:
        file_ =
            static_cast<uint32_t>(std::min<uint64_t>(cursor.Uleb(), DwarfLines::Row::kNoFile - 1));
        return;
      case DW_LNS_const_add_pc:
        return Advance((255U - opcode_base_) / line_range_);
      case DW_LNS_fixed_advance_pc:
        address_ += cursor.Take<uint16_t>();
        return;
      default:
        for (unsigned i = 0; i < operands_[opcode]; ++i) cursor.Uleb();
    }
  }

  void ExecuteExtended(DwarfCursor& cursor) {
    const uint64_t length = cursor.Uleb();
    if (length == 0 || length > cursor.left()) return;
    const uint64_t end = cursor.offset() + length;
    switch (cursor.U8()) {
      case DW_LNE_end_sequence:
        EndSequence();
        break;
      case DW_LNE_set_address:
        if (length - 1 <= 8) address_ = cursor.Unsigned(static_cast<unsigned>(length - 1));
        break;
      case DW_LNE_define_file:
        AddOldFile(cursor);
        break;
      default:
        break;
    }
    if (cursor.offset() < end) cursor.Skip(end - cursor.offset());
  }

  void Advance(uint64_t operations) { address_ += operations * shortest_; }

  void AddRow() {
    if (sequence_at_ == rows_.size()) drop_ = address_ < reader_.sections().text_begin();
    rows_.push_back({address_, {file_, line_}});
  }

  void EndSequence() {
    if (drop_) {  // the linker dropped it
      rows_.resize(sequence_at_);
    } else if (rows_.size() > sequence_at_) {
      rows_.push_back({address_, {}});
    }
    Reset();
  }

  void Reset() {
    sequence_at_ = rows_.size();
    drop_ = false;
    address_ = 0;
    file_ = 1;
    line_ = 1;
  }

  // Sorts the rows. A sequence without an end, as in a damaged program, is left out.
  void SortRows() {
    rows_.resize(sequence_at_);
    const auto is_before = [](const AddressedRow& a, const AddressedRow& b) {
      return a.address != b.address ? a.address < b.address : a.IsEnd() && !b.IsEnd();
    };
    if (!std::is_sorted(rows_.begin(), rows_.end(), is_before)) {
      std::stable_sort(rows_.begin(), rows_.end(), is_before);
    }
    for (const AddressedRow& row : rows_) {
      if (!lines_.starts_.empty() && lines_.starts_.back() == row.address) {
        lines_.rows_.back() = row.row;
      } else if (lines_.rows_.empty() || lines_.rows_.back().file != row.row.file ||
                 lines_.rows_.back().line != row.row.line) {
        lines_.starts_.push_back(row.address);
        lines_.rows_.push_back(row.row);
      }
    }
  }

  const DwarfReader& reader_;
  DwarfUnit unit_;  // the unit, with the encoding of the program
  DwarfLines lines_;
  std::vector<AddressedRow> rows_;
  size_t sequence_at_ = 0;  // start of the current sequence in rows_
  bool drop_ = false;
  // The registers of the state machine.
  Address address_ = 0;
  uint32_t file_ = 1;
  uint32_t line_ = 1;
  // The header's description of the instructions.
  uint8_t shortest_ = 1;
  int line_base_ = 0;
  unsigned line_range_ = 1;
  unsigned opcode_base_ = 1;
  uint8_t operands_[256] = {};
};

DwarfLines DwarfLines::Read(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit) {
  if (!unit.line_program) return {};
  return LineProgram(reader, unit).Run(limit);
}

DwarfLines::Row DwarfLines::Find(Address address) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (after == starts_.begin()) return {};
  return rows_[static_cast<size_t>(after - starts_.begin()) - 1];
}

void DwarfLines::AppendStartsIn(Address begin, Address end, std::vector<Address>& starts) const {
  starts.insert(starts.end(), std::upper_bound(starts_.begin(), starts_.end(), begin),
                std::lower_bound(starts_.begin(), starts_.end(), end));
}

std::string DwarfLines::PathOf(uint32_t file) const {
  if (file >= files_.size() || files_[file].name.empty()) return {};
  const File& known = files_[file];
  std::string path(known.name);
  if (path.starts_with('/')) return path;
  if (known.directory < directories_.size() && !directories_[known.directory].empty()) {
    path = std::string(directories_[known.directory]) + '/' + path;
  }
  if (path.starts_with('/') || compiled_in_.empty()) return path;
  return std::string(compiled_in_) + '/' + path;
}

uint64_t DwarfLines::MemoryUsed() const {
  return starts_.capacity() * sizeof(Address) + rows_.capacity() * sizeof(Row) +
         directories_.capacity() * sizeof(std::string_view) + files_.capacity() * sizeof(File);
}

}  // namespace xenoscope::symbolizer
