// A flat table of the rules by which the callers of a file's code are found: what the file's call
// frame information says, or the ORC of a kernel, sorted by address, in the form in which
// index_cache.h stores it. It is used in place. .eh_frame_hdr is not read: it repeats .eh_frame, or
// contradicts it.
//
// Little-endian, without padding:
//   header       48 bytes
//   starts       u64 each, ascending, the first 0: where ranges of addresses begin
//   owners       u32 each: the row of the range, or kNoRow
//   rows         UnwindRow, 16 bytes each; equal rows are stored once
//   rules        UnwindRule, 8 bytes each
//   expressions  bytes of DWARF expressions
// The table is not trusted: it is checked as if a stranger had written it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/unwind/cfi_program.h"
#include "symbolizer/unwind/cfi_section.h"
#include "symbolizer/unwind/orc_section.h"

namespace xenoscope::symbolizer {

// The rule of a register of the caller.
struct UnwindRule {
  uint8_t column = 0;  // number of the register
  RuleKind kind = RuleKind::kSameValue;
  uint16_t size = 0;  // size of the expression
  int32_t value = 0;  // offset, number of a register, or offset among the expressions
};
static_assert(sizeof(UnwindRule) == 8);

// The rules of a range of addresses. A register without a rule keeps its value, and the stack
// pointer becomes the CFA.
struct UnwindRow {
  static constexpr uint8_t kSignalFrame = 1;  // its caller was interrupted, and did not call
  static constexpr uint8_t kExpression = 2;   // the CFA is the result of an expression
  static constexpr uint8_t kBad = 4;          // the call frame information is damaged there
  static constexpr uint8_t kRegisters = 8;    // all its caller's registers are on the stack: that
                                              // was interrupted, and did not call

  uint32_t first_rule = 0;
  uint8_t rules = 0;
  uint8_t flags = 0;
  uint8_t cfa_register = 0;
  uint8_t reserved = 0;
  int32_t cfa_value = 0;  // offset from the register, or offset among the expressions
  uint32_t cfa_size = 0;  // size of the expression
};
static_assert(sizeof(UnwindRow) == 16);

class UnwindTable {
 public:
  static constexpr uint32_t kNoRow = ~uint32_t{0};

  // Opens the table in `bytes`, which must outlive it. Error: damaged, cut off, or of another
  // version. O(bytes).
  static absl::StatusOr<UnwindTable> Open(Bytes bytes);

  // Returns the number of the row for the code at `address`, as linked, or kNoRow. O(log n).
  [[nodiscard]] uint32_t Find(Address address) const;
  [[nodiscard]] UnwindRow RowAt(uint32_t row) const {
    return LoadUnchecked<UnwindRow>(rows_.data() + uint64_t{row} * sizeof(UnwindRow));
  }
  // `i` is below row.rules.
  [[nodiscard]] UnwindRule RuleAt(const UnwindRow& row, uint8_t i) const {
    return LoadUnchecked<UnwindRule>(rules_.data() +
                                     (uint64_t{row.first_rule} + i) * sizeof(UnwindRule));
  }
  // Returns the expression of a row or rule that has one.
  [[nodiscard]] Bytes CfaExpression(const UnwindRow& row) const {
    return expressions_.subspan(static_cast<uint32_t>(row.cfa_value), row.cfa_size);
  }
  [[nodiscard]] Bytes Expression(const UnwindRule& rule) const {
    return expressions_.subspan(static_cast<uint32_t>(rule.value), rule.size);
  }
  // Returns whether it has no address.
  [[nodiscard]] bool empty() const { return ranges_ <= 1; }

 private:
  [[nodiscard]] Address StartAt(uint64_t range) const {
    return LoadUnchecked<Address>(starts_.data() + range * sizeof(Address));
  }
  [[nodiscard]] uint32_t OwnerAt(uint64_t range) const {
    return LoadUnchecked<uint32_t>(owners_.data() + range * sizeof(uint32_t));
  }
  // Returns whether each row and rule refers to what is in the table.
  [[nodiscard]] bool RowsAreValid() const;

  uint64_t ranges_ = 0;
  Bytes starts_;
  Bytes owners_;
  Bytes rows_;
  Bytes rules_;
  Bytes expressions_;
};

// Returns the bytes of the table for these sections; where several describe an address, the first
// section counts, and in it the function that begins first. Rules that the table cannot hold
// (offsets of 2 GiB) make a row bad. O(n log n) for n bytes.
std::string MakeUnwindTable(std::span<const CfiSection> sections);
// Returns the bytes of the table for a kernel's ORC; empty where these sections are none. O(n log
// n).
std::string MakeUnwindTable(const OrcSections& sections);
// Returns the bytes of the table for entries of ORC in the order of their addresses; empty where
// there are none. O(n).
std::string MakeUnwindTable(std::span<const OrcEntry> entries);

}  // namespace xenoscope::symbolizer
