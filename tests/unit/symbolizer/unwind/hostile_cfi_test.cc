// Call frame information that was written to do harm costs only its own rows and chains: time and
// memory are bounded by the size of the file, and each chain says how it ended. The sizes are such
// that without the limits these tests take minutes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "symbolizer/unwind/unwind_table.h"
#include "symbolizer/unwind/unwinder.h"
#include "tests/unit/symbolizer/unwind/made_table.h"

namespace xenoscope::symbolizer {
namespace {

using namespace std::string_literals;
using testing::IsEmpty;
using testing::SizeIs;

template <typename T>
std::string BytesOf(T value) {
  return std::string(AsText(std::as_bytes(std::span(&value, 1))));
}

// An entry of .eh_frame or .debug_frame.
std::string Entry(uint32_t id, const std::string& content) {
  return BytesOf(static_cast<uint32_t>(4 + content.size())) + BytesOf(id) + content;
}

constexpr uint32_t kCommonId = 0xffff'ffff;  // in .debug_frame
// Code alignment 1, data alignment -8, return address in column 16.
const std::string kAlignments = "\x01\x78\x10"s;

std::string Common(const std::string& instructions) {
  return Entry(kCommonId, "\x01\0"s + kAlignments + instructions);
}
// A function of the common part at offset 0.
std::string Function(Address begin, uint64_t length, const std::string& instructions = {}) {
  return Entry(0, BytesOf(begin) + BytesOf(length) + instructions);
}
std::string Repeat(size_t times, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}
CfiSection DebugFrame(const std::string& bytes) { return {AsBytes(bytes), 0, false}; }

TEST(HostileCfi, LongNumbersAreNotReadForEachFunction) {
  const std::string longest(1 << 20, '\x80');
  std::string bytes = Common("\x2e"s + longest + "\x01"s + kAtEntry);
  for (Address i = 1; i <= 50'000; ++i) bytes += Function(i * 16, 16);
  const MadeTable table({DebugFrame(bytes)});
  EXPECT_EQ(table.OffsetAt(16), -1);
  EXPECT_EQ(table.OffsetAt(50'000 * 16), -1);
  // Numbers that are padded, as linkers do, are good.
  const std::string padded = Common(kAtEntry) + Function(16, 16, "\x0e\x90\x80\x80\x80\0"s);
  EXPECT_EQ(MadeTable({DebugFrame(padded)}).OffsetAt(16), 16);
}

// An .eh_frame at 0: a common part with these letters and their data, and one function of it.
std::string WithLetters(const std::string& letters, const std::string& data) {
  const std::string common =
      Entry(0, "\x01"s + letters + "\0"s + kAlignments + static_cast<char>(data.size()) + data);
  return common + Entry(static_cast<uint32_t>(common.size() + 4), std::string(16, '\x08') + "\0"s);
}

TEST(HostileCfi, PartsThatLieAreLeftOut) {
  const std::string code(17, '\x08');
  const std::string good = WithLetters("zLR"s, "\xff\0"s);
  EXPECT_EQ(ForEachCfiFunction({AsBytes(good), 0}, [](const CfiFunction&) {}), 0U);
  std::string beyond = good;
  beyond[4 + 4 + 1 + 4 + 3] = '\x7f';  // the size of the data
  struct Case {
    std::string name;
    std::string section;
  };
  const std::vector<Case> cases = {
      {"its common part is itself", Entry(4, code)},
      {"its common part is before the section", Entry(5, code)},
      {"its common part is another function", Entry(4, code) + Entry(4 + 25 + 4, code)},
      {"too many letters", WithLetters("z"s + std::string(20, 'L'), std::string(20, '\0'))},
      {"a letter that is not known", WithLetters("zQ"s, "\0"s)},
      {"fewer data than letters", WithLetters("zLR"s, "\0"s)},
      {"more data than bytes", beyond},
      {"an address relative to what is not known", WithLetters("zR"s, "\x30"s)},
      {"an address of an unknown form", WithLetters("zR"s, "\x05"s)},
      {"the end is behind the last address",
       Entry(0, "\x01\0"s + kAlignments) + Entry(17, std::string(8, '\xff') + BytesOf(2L))},
      {"an entry that is longer than the section", BytesOf(0x7fff'ffff) + code},
      {"an entry of 2^64 - 1 bytes", BytesOf(kCommonId) + BytesOf(~uint64_t{0}) + code},
      {"an entry without room for its id", BytesOf(2) + "\x01\x02"s},
  };
  for (const Case& of : cases) {
    const CfiSection section{AsBytes(of.section), 0};
    size_t functions = 0;
    EXPECT_GE(ForEachCfiFunction(section, [&](const CfiFunction&) { ++functions; }), 1U) << of.name;
    EXPECT_EQ(functions, 0U) << of.name;
  }
}

TEST(HostileCfi, RowsTakeMemoryInProportionToTheFile) {
  // Each five bytes add a row with 16 rules, unlike all others.
  std::string instructions;
  for (uint32_t i = 0; i < 300'000; ++i) {
    const uint32_t column = i % 16 == 7 ? 6 : i % 16;
    instructions += {'\x41', static_cast<char>(0x80 | column), static_cast<char>(0x80 | i % 128),
                     static_cast<char>(0x80 | i / 128 % 128), static_cast<char>(i >> 14)};
  }
  const std::string bytes = Common(kAtEntry) + Function(16, 1'000'000, instructions);
  const MadeTable table({DebugFrame(bytes)});
  EXPECT_EQ(table.OffsetAt(16), 8);
  EXPECT_EQ(table.OffsetAt(16 + 300'000), -1) << "too many to store";
  EXPECT_LT(table.size(), 8 * bytes.size());
}

TEST(HostileCfi, ExpressionsAreNotReadForEachRow) {
  const std::string expression = "\x0f\xe0\xd4\x03"s + std::string(60'000, '\x96');
  const std::string bytes =
      Common(expression + "\x90\x01"s) + Function(16, 10'000'000, Repeat(2'000'000, "\x41"s));
  const MadeTable table({DebugFrame(bytes)});
  EXPECT_NE(table.OffsetAt(16), -1);
  EXPECT_EQ(table.OffsetAt(16 + 2'000'000), -1);
}

TEST(HostileCfi, FunctionsInGapsOfAnotherSectionCostTheirOwnRows) {
  std::string small = Common(kAtEntry);
  for (Address i = 1; i <= 50'000; ++i) small += Function(i * 8, 4, "\x0e\x20"s);
  const std::string large =
      Common(kAtEntry) +
      Function(8, 8 * 50'000, "\x0e\x10"s + Repeat(399'000, "\x41"s) + "\x0e\x18"s);
  const MadeTable table({DebugFrame(small), DebugFrame(large)});
  EXPECT_EQ(table.OffsetAt(8), 32);
  EXPECT_EQ(table.OffsetAt(12), 16);
  EXPECT_EQ(table.OffsetAt(398'000), 32);
  EXPECT_EQ(table.OffsetAt(398'004), 16);
  EXPECT_EQ(table.OffsetAt(399'015), 24) << "the rules that hold where the gap begins";
  EXPECT_EQ(table.OffsetAt(400'008), -2);
}

struct Chain {
  ChainEnd end;
  std::vector<Address> callers;
};

// Unwinds from 0x1000 with a stack whose words are all 0x1004.
Chain Unwind(const std::string& section, const std::string& letters, Address stack) {
  const std::string bytes = section.empty() ? Common(letters) + Function(0x1000, 0x100) : section;
  const CfiSection read{AsBytes(bytes), 0, !section.empty()};
  const MadeTable table({read});
  CodeOfTable code(table.table());
  const std::vector<uint64_t> words(1 << 14, 0x1004);
  UserRegisters registers{};
  registers[kRip] = 0x1000;
  registers[kRsp] = stack;
  Chain chain;
  chain.end = Unwinder(code)
                  .Unwind({}, registers, {stack, std::as_bytes(std::span(words))}, chain.callers)
                  .end;
  return chain;
}
Chain Unwind(const std::string& instructions) { return Unwind({}, instructions, 0x8000); }

TEST(HostileCfi, ChainsAreBounded) {
  EXPECT_EQ(Unwind(kAtEntry).end, ChainEnd::kTooDeep) << "recursion without end";
  EXPECT_THAT(Unwind(kAtEntry).callers, SizeIs(Unwinder::kMaxCallers));
  // A signal frame need not go out of its stack: this one leads to itself.
  const std::string common = Entry(0, "\x01zRS\0"s + kAlignments + "\x01\0\x0c\x07\0\x90\0"s);
  const std::string self =
      common + Entry(static_cast<uint32_t>(common.size() + 4),
                     BytesOf(Address{0x1000}) + BytesOf(uint64_t{0x100}) + "\0"s);
  EXPECT_EQ(Unwind(self, {}, 0x8000).end, ChainEnd::kTooDeep);
  // The CFA does not move, or falls.
  EXPECT_EQ(Unwind("\x0c\x07\0\x90\0"s).end, ChainEnd::kBadRule);
  EXPECT_EQ(Unwind("\x12\x07\x01\x90\0"s).end, ChainEnd::kBadRule);
}

TEST(HostileCfi, ExpressionsOfAChainAreBounded) {
  // rsp + 8, after a loop: a counter of 250 in four steps each.
  const std::string cfa =
      "\x77\x08\x08\xfa\x31\x1c\x12\x28\xfa\xff\x13"s;  // lit1 minus dup bra -6 drop
  const std::string rule = "\x0f\x0b"s + cfa + "\x90\x01"s;
  const Chain chain = Unwind(rule);
  EXPECT_EQ(chain.end, ChainEnd::kBadRule);
  EXPECT_THAT(chain.callers, SizeIs(testing::AllOf(testing::Gt(5U), testing::Lt(20U))));
  // A loop without end, a division by zero, the smallest number by -1, reads outside the stack.
  for (const std::string& expression :
       {"\x2f\xfd\xff"s, "\x31\x30\x1b"s, "\x31\x30\x1d"s, "\x0e\0\0\0\0\0\0\0\x80\x09\xff\x1b"s,
        "\x30\x06"s, "\x77\x78\x06"s, "\x0e\xf8\xff\xff\xff\xff\xff\xff\xff\x06"s, "\x2f\x7f\x7f"s,
        "\x15\xff"s}) {
    const auto size = static_cast<char>(expression.size());
    const Chain of = Unwind("\x0f"s + size + expression + "\x90\x01"s);
    EXPECT_EQ(of.end, ChainEnd::kBadRule) << testing::PrintToString(expression);
    EXPECT_THAT(of.callers, IsEmpty());
  }
}

TEST(HostileCfi, StacksAtTheEndOfMemory) {
  // The piece ends with the last address; the CFA and the words wrap.
  const Address stack = 0 - Address{1 << 17};
  EXPECT_EQ(Unwind({}, kAtEntry, stack).end, ChainEnd::kTooDeep);
  EXPECT_EQ(Unwind({}, "\x0c\x07\x80\x80\x08\x90\x01"s, stack).end, ChainEnd::kBadRule);
  EXPECT_EQ(Unwind({}, "\x0c\x07\x80\x80\x40\x90\x01"s, 0x8000).end, ChainEnd::kStackCut);
}

}  // namespace
}  // namespace xenoscope::symbolizer
