// Tables say what the call frame information says, whatever its order; damage costs only the rows
// that it is in.
#include "symbolizer/unwind/unwind_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "symbolizer/file_content.h"
#include "symbolizer/image_file.h"
#include "symbolizer/unwind/unwind_expression.h"
#include "symbolizer/unwind/unwinder.h"
#include "tests/unit/symbolizer/unwind/made_table.h"

namespace xenoscope::symbolizer {
namespace {

using namespace std::string_literals;

// A .debug_frame in the making: its addresses need no encoding.
class Section {
 public:
  // Adds a CIE with code alignment 1, data alignment -8 and these instructions; returns its offset.
  uint32_t AddCommon(const std::string& instructions) {
    return Add("\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10"s + instructions);
  }
  void AddFunction(uint32_t common, uint64_t begin, uint64_t length,
                   const std::string& instructions) {
    std::string entry(20, '\0');
    std::memcpy(entry.data(), &common, 4);
    std::memcpy(entry.data() + 4, &begin, 8);
    std::memcpy(entry.data() + 12, &length, 8);
    Add(entry + instructions);
  }
  CfiSection section() const { return {AsBytes(bytes_), 0, /*is_eh_frame=*/false}; }
  std::string& bytes() { return bytes_; }

 private:
  uint32_t Add(const std::string& entry) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    const auto length = static_cast<uint32_t>(entry.size());
    bytes_.append(reinterpret_cast<const char*>(&length), 4);
    bytes_ += entry;
    return at;
  }
  std::string bytes_;
};

TEST(UnwindTable, HasTheRulesOfEachInstruction) {
  Section section;
  const uint32_t common = section.AddCommon(kAtEntry);
  // push rbp at 1; mov rsp,rbp at 4; pop at 9.
  section.AddFunction(common, 0x1000, 16, "\x41\x0e\x10\x86\x02\x43\x0d\x06\x45\x0c\x07\x08"s);
  const MadeTable table({section.section()});
  EXPECT_EQ(table.CfaAt(0xfff), "none");
  EXPECT_EQ(table.CfaAt(0x1000), "7+8");
  EXPECT_EQ(table.CfaAt(0x1001), "7+16");
  EXPECT_EQ(table.CfaAt(0x1003), "7+16");
  EXPECT_EQ(table.CfaAt(0x1004), "6+16");
  EXPECT_EQ(table.CfaAt(0x1009), "7+8");
  EXPECT_EQ(table.CfaAt(0x100f), "7+8");
  EXPECT_EQ(table.CfaAt(0x1010), "none");
}

TEST(UnwindTable, SortsFunctionsAndTheFirstOneOwnsItsCode) {
  Section section;
  const uint32_t common = section.AddCommon(kAtEntry);
  section.AddFunction(common, 0x2000, 0x100, "\x0e\x20"s);
  section.AddFunction(common, 0x1000, 0x1080, "\x0e\x10"s);
  Section other;
  other.AddFunction(other.AddCommon(kAtEntry), 0x1800, 0x1000, "\x0e\x30"s);
  const MadeTable table({section.section(), other.section()});
  EXPECT_EQ(table.CfaAt(0x1000), "7+16");
  EXPECT_EQ(table.CfaAt(0x207f), "7+16");
  EXPECT_EQ(table.CfaAt(0x2080), "7+32") << "what is left of the one that begins later";
  EXPECT_EQ(table.CfaAt(0x2100), "7+48") << "the other section, where the first has nothing";
  EXPECT_EQ(table.CfaAt(0x2800), "none");
}

TEST(UnwindTable, DamagedInstructionsMakeTheirRowBad) {
  Section section;
  const uint32_t common = section.AddCommon(kAtEntry);
  section.AddFunction(common, 0x1000, 16, "\x41\x3f"s);                      // no such instruction
  section.AddFunction(common, 0x2000, 16, "\x0b"s);                          // nothing to restore
  section.AddFunction(common, 0x3000, 16, "\x41\x0f\xff\x7f"s);              // block beyond the end
  section.AddFunction(common, 0x4000, 16, "\x41\x0c\x70\x08"s);              // no such register
  section.AddFunction(common, 0x5000, 16, "\x0e\xff\xff\xff\xff\xff\x7f"s);  // offset of 4 TiB
  const MadeTable table({section.section()});
  EXPECT_EQ(table.CfaAt(0x1000), "7+8");
  for (const Address at : {0x1001, 0x2000, 0x3001, 0x4001, 0x5000}) {
    EXPECT_EQ(table.CfaAt(at), "bad") << at;
  }
}

TEST(UnwindTable, RegistersThatWerePoppedHaveTheirValue) {
  Section section;
  const uint32_t common = section.AddCommon(kAtEntry);
  // A function behind its pop of rbx and rbp, whose rules GCC leaves; its caller's frame is at rbp.
  section.AddFunction(common, 0x1000, 16, "\x83\x03\x86\x02"s);
  section.AddFunction(common, 0x2000, 16, "\x0c\x06\x10\x86\x02"s);
  const MadeTable table({section.section()});
  CodeOfTable code(table.table());
  Unwinder unwinder(code);
  const std::vector<uint64_t> words = {0x2008, 0x1111, /*caller's rbp:*/ 0, /*outermost:*/ 0};
  UserRegisters registers{};
  registers[kRip] = 0x1000;
  registers[kRsp] = 0x8000;
  registers[kRbp] = 0x8010;
  std::vector<Address> callers;
  const UnwoundChain chain =
      unwinder.Unwind({}, registers, {0x8000, std::as_bytes(std::span(words))}, callers);
  EXPECT_EQ(chain.end, ChainEnd::kOutermost);
  EXPECT_THAT(callers, testing::ElementsAre(0x2008));
}

TEST(UnwindTable, IsNotTrustedWhenItIsReadBack) {
  Section section;
  section.AddFunction(section.AddCommon(kAtEntry), 0x1000, 16, "\x41\x0e\x10"s);
  const std::string good = MadeTable({section.section()}).bytes();
  EXPECT_FALSE(UnwindTable::Open(AsBytes(good.substr(0, good.size() - 1))).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    EXPECT_FALSE(UnwindTable::Open(AsBytes(bad)).ok()) << i;
  }
}

// Every rule of the C library's .eh_frame is what elfutils reads there.
TEST(UnwindTable, AgreesWithElfutilsOnTheCLibrary) {
  const std::string path = "/lib/x86_64-linux-gnu/libc.so.6";
  auto image = ImageFile::Open(*FileContent::Open(path), path, FileFinder());
  ASSERT_TRUE(image.ok());
  const UnwindTable* const table = (*image)->unwind_table();
  ASSERT_NE(table, nullptr);
  const std::unique_ptr<Dwarf_CFI, int (*)(Dwarf_CFI*)> cfi(dwarf_getcfi_elf((*image)->elf().get()),
                                                            dwarf_cfi_end);
  ASSERT_NE(cfi, nullptr);
  size_t compared = 0;
  for (Address at = 0x26000; at < 0x170000; at += 7) {
    Dwarf_Frame* frame = nullptr;
    const bool known = dwarf_cfi_addrframe(cfi.get(), at, &frame) == 0;
    const std::unique_ptr<Dwarf_Frame, void (*)(void*)> owner(frame, std::free);
    const uint32_t number = table->Find(at);
    ASSERT_EQ(number != UnwindTable::kNoRow, known) << at;
    if (!known) continue;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    ASSERT_EQ(dwarf_frame_cfa(frame, &ops, &count), 0);
    const UnwindRow row = table->RowAt(number);
    if (count != 1 || ops[0].atom != DW_OP_bregx) continue;
    ASSERT_EQ(row.cfa_register, ops[0].number) << at;
    ASSERT_EQ(row.cfa_value, static_cast<int64_t>(ops[0].number2)) << at;
    ++compared;
  }
  EXPECT_GT(compared, 100'000U);
}

std::optional<uint64_t> Evaluate(const std::string& expression, const UserRegisters& registers = {},
                                 const StackPiece& stack = {},
                                 std::optional<uint64_t> initial = std::nullopt) {
  uint32_t steps_left = 1000;
  return EvaluateExpression(AsBytes(expression), registers, stack, steps_left, initial);
}

TEST(Expression, ComputesTheCfaOfAPlt) {
  // As GNU ld writes it: rsp + 8 + (((rip & 15) >= 11) << 3).
  const std::string plt = "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"s;
  UserRegisters registers{};
  registers[kRsp] = 0x8000;
  registers[kRip] = 0x1006;
  EXPECT_EQ(Evaluate(plt, registers), 0x8008U);
  registers[kRip] = 0x100b;
  EXPECT_EQ(Evaluate(plt, registers), 0x8010U);
}

TEST(Expression, ReadsTheRecordedStackOnly) {
  const std::vector<uint64_t> words = {7, 8};
  const StackPiece stack{0x8000, std::as_bytes(std::span(words))};
  const std::string deref = "\x06"s;
  EXPECT_EQ(Evaluate(deref, {}, stack, 0x8008), 8U);
  EXPECT_EQ(Evaluate(deref, {}, stack, 0x8009), std::nullopt);
  EXPECT_EQ(Evaluate(deref, {}, stack, 0x7ff8), std::nullopt);
}

TEST(Expression, EndsWhateverItSays) {
  EXPECT_EQ(Evaluate("\x30\x2f\xfc\xff"s), std::nullopt) << "a loop that fills the stack";
  EXPECT_EQ(Evaluate("\x2f\xfd\xff"s), std::nullopt) << "a loop";
  EXPECT_EQ(Evaluate("\x22"s), std::nullopt) << "an empty stack";
  EXPECT_EQ(Evaluate(std::string(100, '\x30')), std::nullopt) << "deep";
  EXPECT_EQ(Evaluate("\x31\x30\x1b"s), std::nullopt) << "1 / 0";
  EXPECT_EQ(Evaluate("\x31\x2f\x7f\x7f"s), std::nullopt) << "far away";
  EXPECT_EQ(Evaluate({}), std::nullopt);
}

}  // namespace
}  // namespace xenoscope::symbolizer
