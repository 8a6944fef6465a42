// Tables that are made of call frame information of tests, and code that they describe.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "symbolizer/unwind/unwind_table.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {

// Instructions of a common part: CFA rsp+8, return address at CFA-8.
inline const std::string kAtEntry = "\x0c\x07\x08\x90\x01";

class MadeTable {
 public:
  explicit MadeTable(const std::vector<CfiSection>& sections) : bytes_(MakeUnwindTable(sections)) {
    auto opened = UnwindTable::Open(AsBytes(bytes_));
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) table_ = *opened;
  }
  // "rsp+16" and the like; "none" without a row, "bad" of damaged rules.
  [[nodiscard]] std::string CfaAt(Address address) const {
    const uint32_t number = table_.Find(address);
    if (number == UnwindTable::kNoRow) return "none";
    const UnwindRow row = table_.RowAt(number);
    if ((row.flags & UnwindRow::kBad) != 0) return "bad";
    if ((row.flags & UnwindRow::kExpression) != 0) return "expression";
    return fmt::format("{}{:+}", row.cfa_register, row.cfa_value);
  }
  // Returns what is to be added to the stack pointer; -1: the row is damaged; -2: there is none.
  [[nodiscard]] int32_t OffsetAt(Address address) const {
    const uint32_t row = table_.Find(address);
    if (row == UnwindTable::kNoRow) return -2;
    return (table_.RowAt(row).flags & UnwindRow::kBad) != 0 ? -1 : table_.RowAt(row).cfa_value;
  }
  [[nodiscard]] const UnwindTable& table() const { return table_; }
  std::string& bytes() { return bytes_; }
  [[nodiscard]] size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
  UnwindTable table_;
};

// All code below 64 KiB is that of one table, at its own addresses.
class CodeOfTable final : public UnwindCodeSource {
 public:
  explicit CodeOfTable(const UnwindTable& table) : table_(table) {}
  UnwindCode CodeAt(AddressSpaceId /*space*/, Address address) override {
    return {address < 0x10000, &table_, address};
  }

 private:
  const UnwindTable& table_;
};

}  // namespace xenoscope::symbolizer
