// ORC says what Linux's objtool says of it, and what the call frame information of the same code
// says; chains lead from a kernel's functions to where it was entered, in every layout.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/unwind/orc_section.h"
#include "symbolizer/unwind/unwind_table.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Address kTextBegin = 0xffffffff81000000;
constexpr Address kThunk = kTextBegin + 0x500;  // of an indirect call
constexpr Address kBpf = 0xffffffffc0400000;
constexpr Address kSectionAt = 0xffffffff82000000;

// The layouts of entries, as in orc_section.cc.
enum Layout { kUpTo62, k63, kSince64 };
enum Kind { kUndefined, kEnd, kCall, kRegs, kPartialRegs };

// The two sections in the making.
class Sections {
 public:
  explicit Sections(Layout layout) : layout_(layout) {}

  void Add(Address begin, Kind kind, int sp_register = 0, int sp_offset = 0, int bp_register = 0,
           int bp_offset = 0) {
    const Address place = kSectionAt + addresses_.size() * sizeof(int32_t);
    addresses_.push_back(static_cast<int32_t>(begin - place));
    const unsigned bits = static_cast<unsigned>(sp_register) |
                          static_cast<unsigned>(bp_register) << 4 | Bits(kind) << 8;
    for (const int value : {sp_offset, bp_offset, static_cast<int>(bits)}) {
      words_.push_back(static_cast<int16_t>(value));
    }
  }
  OrcSections sections() const {
    return {std::as_bytes(std::span(addresses_)), kSectionAt, std::as_bytes(std::span(words_))};
  }

 private:
  // Type, signal and end.
  unsigned Bits(Kind kind) const {
    const bool regs = kind == kRegs || kind == kPartialRegs;
    if (layout_ == kSince64) return static_cast<unsigned>(kind) | (regs ? 8U : 0U);
    const unsigned type = kind == kRegs ? 1 : kind == kPartialRegs ? 2 : 0;
    if (layout_ == kUpTo62) return type | (kind == kEnd ? 4U : 0U);
    return type | (regs ? 4U : 0U) | (kind == kEnd ? 8U : 0U);
  }

  Layout layout_;
  std::vector<int32_t> addresses_;
  std::vector<int16_t> words_;
};

// A kernel whose code is all in one table, and whose modules have none; at kBpf is a BPF program.
class Kernel final : public UnwindCodeSource {
 public:
  explicit Kernel(const OrcSections& sections) : bytes_(MakeUnwindTable(sections)) {
    auto opened = UnwindTable::Open(AsBytes(bytes_));
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) table_ = *opened;
  }
  UnwindCode CodeAt(AddressSpaceId /*space*/, Address address) override {
    if (address < kTextBegin) return {.entered_kernel = true};
    const bool module = address >= 0xffffffffc0000000;
    const bool is_thunk = address >= kThunk && address < kThunk + 0x20;
    return {.mapped = module || is_thunk || table_.Find(address) != UnwindTable::kNoRow,
            .table = module ? nullptr : &table_,
            .address = address,
            .frame_pointers = address >= kBpf,
            .is_thunk = is_thunk};
  }
  const UnwindTable& table() const { return table_; }

 private:
  std::string bytes_;
  UnwindTable table_;
};

constexpr int kBp = 4;
constexpr int kSp = 5;
constexpr int kPrevious = 1;
constexpr int kSpIndirect = 9;
constexpr size_t kPtRegsWords = 21;
constexpr size_t kIp = 16;
constexpr size_t kPushedSp = 19;

class OrcOfLayout : public testing::TestWithParam<Layout> {
 protected:
  OrcOfLayout() : orc_(GetParam()) {
    // Not in order, as up to 5.6.
    orc_.Add(kTextBegin + 0x400, kEnd);  // a thread of the kernel begins here
    orc_.Add(kTextBegin + 0x440, kUndefined);
    orc_.Add(kTextBegin, kCall, kSp, 16, kPrevious, -16);          // pushes bp
    orc_.Add(kTextBegin + 0x100, kCall, kBp, 16, kPrevious, -16);  // has a frame pointer
    orc_.Add(kTextBegin + 0x200, kUndefined);
    orc_.Add(kTextBegin + 0x200, kCall, kSp, 24);
    orc_.Add(kTextBegin + 0x300, kRegs, kSp, 8);          // a system call, an interrupt
    orc_.Add(kTextBegin + 0x380, kCall, kSpIndirect, 8);  // calls on another stack
    orc_.Add(kThunk, kEnd);  // up to 6.2; then undefined, as is what follows
    orc_.Add(kThunk + 8, kUndefined);
    orc_.Add(kThunk + 0x10, kCall, kSp, 8);  // the return to the function that is called
    orc_.Add(kThunk + 0x18, kEnd);
    orc_.Add(kThunk + 0x20, kUndefined);
  }

  // Words of the stack, which begins at kStack.
  std::vector<Address> Unwind(UserRegisters registers, const std::vector<uint64_t>& words) {
    Kernel kernel(orc_.sections());
    Unwinder unwinder(kernel);
    registers[kRsp] = kStack;
    std::vector<Address> callers;
    end_ = unwinder.Unwind({1}, registers, {kStack, std::as_bytes(std::span(words))}, callers).end;
    return callers;
  }
  static UserRegisters At(Address address) {
    UserRegisters registers{};
    registers[kRip] = address;
    return registers;
  }
  // struct pt_regs of code at `ip`.
  static std::vector<uint64_t> PtRegs(Address ip, Address sp) {
    std::vector<uint64_t> words(kPtRegsWords);
    words[kIp] = ip;
    words[kPushedSp] = sp;
    return words;
  }
  static std::vector<uint64_t> Joined(std::vector<uint64_t> words,
                                      const std::vector<uint64_t>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  static constexpr Address kStack = 0xffffc90000001000;
  Sections orc_;
  ChainEnd end_ = ChainEnd::kOutermost;
};

TEST_P(OrcOfLayout, LeadsToWhereUserModeEnteredTheKernel) {
  // A function that pushed bp, its caller with a frame pointer, and the entry.
  const std::vector<uint64_t> words =
      Joined({kStack + 0x18, kTextBegin + 0x110, 0x1111, 0, kTextBegin + 0x310, 0},
             PtRegs(0x401000, 0x7ffc00001000));
  EXPECT_THAT(Unwind(At(kTextBegin + 0x10), words),
              ElementsAre(kTextBegin + 0x110, kTextBegin + 0x310));
  EXPECT_EQ(end_, ChainEnd::kOutermost);
}

TEST_P(OrcOfLayout, LeadsToWhatAnInterruptInterrupted) {
  const Address interrupted = kTextBegin + 0x200;  // the first instruction of its function
  std::vector<uint64_t> words = {0, 0, kTextBegin + 0x310, 0};
  const Address sp = kStack + (words.size() + kPtRegsWords) * 8;
  words = Joined(Joined(words, PtRegs(interrupted, sp)), {0, 0, kTextBegin + 0x410});
  EXPECT_THAT(Unwind(At(kTextBegin + 0x210), words),
              ElementsAre(kTextBegin + 0x310, interrupted + 1, kTextBegin + 0x410));
  EXPECT_EQ(end_, ChainEnd::kOutermost);
}

TEST_P(OrcOfLayout, SaysWhyAChainEnds) {
  EXPECT_THAT(Unwind(At(kTextBegin + 0x210), {0, 0}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kStackCut);
  EXPECT_THAT(Unwind(At(kTextBegin + 0x210), {0, 0, 0xffffffffc0001000, 0}),
              ElementsAre(0xffffffffc0001000));
  EXPECT_EQ(end_, ChainEnd::kNoTable) << "a module called it";
  EXPECT_THAT(Unwind(At(kTextBegin + 0x210), {0, 0, kTextBegin + 0x441, 0}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kBadRule) << "no code is there";
  EXPECT_THAT(Unwind(At(kTextBegin + 0x210), {0, 0, 0x401000, 0}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kBadRule) << "user mode does not call the kernel";
  EXPECT_THAT(Unwind(At(kTextBegin + 0x440), {0}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kNoTable);
}

TEST_P(OrcOfLayout, LeavesBpfByItsFramePointer) {
  // The kernel's function that the program called left bp as it is.
  UserRegisters registers = At(kTextBegin + 0x210);
  registers[kRbp] = kStack + 0x20;
  const std::vector<uint64_t> words = {0, 0, kBpf + 0x30,       7, /*bp:*/ 0, kTextBegin + 0x210,
                                       0, 0, kTextBegin + 0x410};
  EXPECT_THAT(Unwind(registers, words),
              ElementsAre(kBpf + 0x30, kTextBegin + 0x210, kTextBegin + 0x410));
  EXPECT_EQ(end_, ChainEnd::kOutermost);
  registers[kRbp] = 0x1234;  // no frame
  EXPECT_THAT(Unwind(registers, words), ElementsAre(kBpf + 0x30));
  EXPECT_EQ(end_, ChainEnd::kNoTable);
}

TEST_P(OrcOfLayout, LeavesThunksOfIndirectCalls) {
  const Address outermost = kTextBegin + 0x410;
  for (const Address at : {kThunk, kThunk + 8, kThunk + 0x18}) {
    EXPECT_THAT(Unwind(At(at), {kTextBegin + 0x210, 0, 0, outermost}),
                ElementsAre(kTextBegin + 0x210, outermost));
    EXPECT_EQ(end_, ChainEnd::kOutermost);
  }
  // The thunk's own call, whose return address it replaces by the function's.
  EXPECT_THAT(Unwind(At(kThunk + 8), {kThunk + 5, kTextBegin + 0x210, 0, 0, outermost}),
              ElementsAre(kThunk + 5, kTextBegin + 0x210, outermost));
  const Address function = kTextBegin + 0x200;
  EXPECT_THAT(Unwind(At(kThunk + 0x10), {function, 0, 0, outermost}),
              ElementsAre(function + 1, outermost));
  EXPECT_THAT(Unwind(At(kThunk), {}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kStackCut);
  EXPECT_THAT(Unwind(At(kThunk), {0x401000}), IsEmpty());
  EXPECT_EQ(end_, ChainEnd::kBadRule) << "user mode does not call the kernel";
}

TEST_P(OrcOfLayout, LeavesAnotherStackByTheWordThatLeadsBack) {
  // The word at the stack pointer is where the interrupted task's stack goes on.
  EXPECT_THAT(Unwind(At(kTextBegin + 0x390), {kStack + 0x18, 0, 0, kTextBegin + 0x410}),
              ElementsAre(kTextBegin + 0x410));
  EXPECT_EQ(end_, ChainEnd::kOutermost);
}

TEST_P(OrcOfLayout, IsSortedAndHasOneEntryForAnAddress) {
  const auto entries = ReadOrc(orc_.sections());
  ASSERT_TRUE(entries.has_value());
  EXPECT_THAT(*entries, SizeIs(12));
  for (size_t i = 1; i < entries->size(); ++i)
    EXPECT_LT((*entries)[i - 1].begin, (*entries)[i].begin);
  EXPECT_EQ((*entries)[2].begin, kTextBegin + 0x200);
  EXPECT_EQ((*entries)[2].type, OrcType::kCall);
}

INSTANTIATE_TEST_SUITE_P(All, OrcOfLayout, testing::Values(kUpTo62, k63, kSince64));

// One in fourteen modules of Debian's Linux 6.12 has more entries of undefined code than of calls.
TEST(Orc, OfAModuleHasTheLayoutOfItsKernel) {
  Sections orc(kSince64);
  orc.Add(kTextBegin, kCall, kSp, 8);
  orc.Add(kTextBegin + 0x10, kUndefined);
  orc.Add(kTextBegin + 0x20, kUndefined);
  EXPECT_NE(OrcLayoutOf(orc.sections().entries), OrcLayout::kFiveTypes) << "told by these alone";
  const std::array<Address, 3> begins = {0x40, 0x50, 0x60};
  const auto entries = ReadOrc(begins, orc.sections().entries, OrcLayout::kFiveTypes);
  ASSERT_TRUE(entries.has_value());
  EXPECT_EQ(entries->front().type, OrcType::kCall);
  EXPECT_EQ(entries->front().begin, 0x40U);
  EXPECT_FALSE(ReadOrc(std::span(begins).first(2), orc.sections().entries, OrcLayout::kFiveTypes)
                   .has_value());
}

TEST(Orc, IsNotReadWhereSectionsDoNotFit) {
  Sections orc(kSince64);
  orc.Add(kTextBegin, kCall, kSp, 8);
  const OrcSections fits = orc.sections();
  EXPECT_TRUE(ReadOrc(fits).has_value());
  OrcSections other = fits;
  other.entries = fits.entries.first(5);
  EXPECT_FALSE(ReadOrc(other).has_value());
  other = fits;
  other.addresses = fits.addresses.first(3);
  EXPECT_FALSE(ReadOrc(other).has_value());
  EXPECT_FALSE(ReadOrc({}).has_value());
  EXPECT_THAT(MakeUnwindTable(OrcSections{}), IsEmpty());
}

// A base that is no register.
TEST(Orc, IsBadWhereAnEntryHasNoSense) {
  Sections orc(kSince64);
  orc.Add(kTextBegin, kCall, 15, 8);
  orc.Add(kTextBegin + 0x10, kCall, kPrevious, 8);
  orc.Add(kTextBegin + 0x20, kUndefined);
  const Kernel kernel(orc.sections());
  for (const Address at : {kTextBegin, kTextBegin + 0x10}) {
    const uint32_t row = kernel.table().Find(at);
    ASSERT_NE(row, UnwindTable::kNoRow);
    EXPECT_NE(kernel.table().RowAt(row).flags & UnwindRow::kBad, 0);
  }
}

// Code for which gcc uses both bases: the stack pointer, and a frame pointer (alloca, and a stack
// that is aligned).
constexpr const char* kSource = R"(
void use(void*);
int leaf(int x) { return x * 3; }
int recurse(int n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }
int calls(int a, int b) { int words[40]; use(words); return recurse(a) + leaf(b) + words[3]; }
int dynamic(int n) { void* at = __builtin_alloca(n); use(at); return recurse(n); }
int aligned(int n) { int at[64] __attribute__((aligned(64))); use(at); return recurse(n) + at[1]; }
)";

// That code with ORC, by Linux's objtool; empty where this is not installed (linux-kbuild-6.1).
class FileWithOrc : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& entry : std::filesystem::directory_iterator("/usr/lib")) {
      const auto tool = entry.path() / "tools/objtool/objtool";
      if (entry.path().filename().string().starts_with("linux-kbuild-") &&
          std::filesystem::exists(tool)) {
        objtool_ = "SRCARCH=x86 " + tool.string();
      }
    }
    if (objtool_.empty()) GTEST_SKIP() << "objtool is not installed";
    std::string pattern = (std::filesystem::temp_directory_path() / "orc.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::ofstream(directory_ / "code.c") << kSource;
    const std::string make = fmt::format(
        "cd {} && gcc -O2 -mno-red-zone -fno-pic -mcmodel=kernel -fcf-protection=none "
        "-fno-stack-protector -fno-optimize-sibling-calls -c code.c -o code.o && {} --orc code.o "
        "&& ld -e leaf --unresolved-symbols=ignore-all -Ttext={:#x} -o code code.o",
        directory_.string(), objtool_, kTextBegin);
    ASSERT_EQ(std::system(make.c_str()), 0);
    auto content = FileContent::Open((directory_ / "code").string());
    ASSERT_TRUE(content.ok()) << content.status();
    content_ = std::make_unique<FileContent>(*std::move(content));
    auto elf = ElfFile::Open(content_->bytes());
    ASSERT_TRUE(elf.ok()) << elf.status();
    elf_ = *std::move(elf);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  OrcSections Orc() const {
    return {elf_.Section(".orc_unwind_ip"), elf_.AddressOfSection(".orc_unwind_ip"),
            elf_.Section(".orc_unwind")};
  }
  // The lines of objtool: "ffffffff81000007: sp:sp+416 bp:(und) type:call end:0", whose words come
  // in another order since 6.4. Those of an object file begin with ".text+7:", and give offsets.
  std::map<Address, std::string> Dumped(const std::string& file = "code") const {
    constexpr std::string_view kSection = ".text+";
    const std::string command =
        fmt::format("{} --dump=orc {}", objtool_, (directory_ / file).string());
    const std::unique_ptr<FILE, decltype(&pclose)> pipe(popen(command.c_str(), "r"), &pclose);
    std::map<Address, std::string> lines;
    std::array<char, 256> line{};
    while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      std::string text = line.data();
      if (text.starts_with(kSection)) text.erase(0, kSection.size());
      uint64_t address = 0;
      if (absl::SimpleHexAtoi(text.substr(0, text.find(':')), &address)) lines[address] = text;
    }
    return lines;
  }

  // The offset of a function in .text: that of the linked file begins at kTextBegin.
  Address OffsetOf(std::string_view function) const {
    const auto symbols = ReadElf(elf_, "code");
    for (const Symbol& symbol : symbols->table.functions) {
      if (symbol.name == function) return symbol.address - kTextBegin;
    }
    ADD_FAILURE() << "no " << function;
    return 0;
  }

  std::string objtool_;
  std::filesystem::path directory_;
  std::unique_ptr<FileContent> content_;
  ElfFile elf_;
};

std::string Place(OrcRegister base, int offset) {
  switch (base) {
    case OrcRegister::kUndefined:
      return "(und)";
    case OrcRegister::kPreviousSp:
      return fmt::format("prevsp{:+}", offset);
    case OrcRegister::kBp:
      return fmt::format("bp{:+}", offset);
    case OrcRegister::kSp:
      return fmt::format("sp{:+}", offset);
    case OrcRegister::kR10:
      return fmt::format("r10{:+}", offset);
    case OrcRegister::kBpIndirect:
      return fmt::format("(bp{:+})", offset);
    default:
      return "another";
  }
}

TEST_F(FileWithOrc, IsWhatObjtoolSays) {
  const auto entries = ReadOrc(Orc());
  ASSERT_TRUE(entries.has_value());
  const std::map<Address, std::string> dumped = Dumped();
  ASSERT_EQ(entries->size(), dumped.size());
  std::map<OrcRegister, int> bases;
  for (const OrcEntry& entry : *entries) {
    ++bases[entry.sp_register];
    const auto line = dumped.find(entry.begin);
    ASSERT_NE(line, dumped.end());
    EXPECT_THAT(line->second,
                testing::HasSubstr("sp:" + Place(entry.sp_register, entry.sp_offset) + " "));
    EXPECT_THAT(line->second,
                testing::HasSubstr("bp:" + Place(entry.bp_register, entry.bp_offset) + " "));
  }
  for (const OrcRegister base : {OrcRegister::kSp, OrcRegister::kBp}) {
    EXPECT_GT(bases[base], 0) << "the code has such frames";
  }
}

// The object file has the same sections as a module's.
TEST_F(FileWithOrc, IsInAnObjectWhatObjtoolSays) {
  const std::string path = (directory_ / "code.ko").string();
  std::filesystem::rename(directory_ / "code.o", path);
  const auto file = ModuleFile::Open(FileContent::Open(path).value(), path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto places = (*file)->PlacesOf(std::vector<LoadedFunction>{
      {"leaf", kTextBegin + OffsetOf("leaf")}, {"recurse", kTextBegin + OffsetOf("recurse")}});
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_THAT(*places, SizeIs(1));
  const auto begins = (*file)->OrcBegins();
  ASSERT_TRUE(begins.has_value());
  const auto entries =
      ReadOrc(*begins, (*file)->OrcEntries(), OrcLayoutOf(elf_.Section(".orc_unwind")));
  const std::map<Address, std::string> dumped = Dumped("code.ko");
  ASSERT_TRUE(entries.has_value());
  EXPECT_EQ(entries->size(), dumped.size());
  for (const OrcEntry& entry : *entries) {
    const auto line = dumped.find(entry.begin - places->front().address);
    ASSERT_NE(line, dumped.end());
    EXPECT_THAT(line->second,
                testing::HasSubstr("sp:" + Place(entry.sp_register, entry.sp_offset) + " "));
    EXPECT_THAT(line->second,
                testing::HasSubstr("bp:" + Place(entry.bp_register, entry.bp_offset) + " "));
  }
}

TEST_F(FileWithOrc, IsWhatTheCallFrameInformationSays) {
  const std::string orc_bytes = MakeUnwindTable(Orc());
  const CfiSection eh_frame{elf_.Section(".eh_frame"), elf_.AddressOfSection(".eh_frame")};
  const std::string cfi_bytes = MakeUnwindTable({&eh_frame, 1});
  const auto orc = UnwindTable::Open(AsBytes(orc_bytes));
  const auto cfi = UnwindTable::Open(AsBytes(cfi_bytes));
  ASSERT_TRUE(orc.ok() && cfi.ok());
  const Bytes text = elf_.Section(".text");
  size_t compared = 0;
  for (Address at = kTextBegin; at < kTextBegin + text.size(); ++at) {
    const uint32_t by_orc = orc->Find(at);
    const uint32_t by_cfi = cfi->Find(at);
    if (by_orc == UnwindTable::kNoRow || by_cfi == UnwindTable::kNoRow) continue;
    const UnwindRow one = orc->RowAt(by_orc);
    const UnwindRow other = cfi->RowAt(by_cfi);
    // Expressions say the same in other words.
    if (((one.flags | other.flags) & UnwindRow::kExpression) != 0) continue;
    EXPECT_EQ(one.cfa_register, other.cfa_register) << std::hex << at;
    EXPECT_EQ(one.cfa_value, other.cfa_value) << std::hex << at;
    ++compared;
  }
  EXPECT_GT(compared, text.size() / 2);
}

}  // namespace
}  // namespace xenoscope::symbolizer
