// The readers of symbol texts: what each kind of line becomes.
#include "symbolizer/text/text_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

using testing::HasSubstr;

TEST(SymbolLines, ParseAllFormats) {
  struct {
    std::string_view line;
    Address address;
    uint64_t size;
    std::string_view name;
    std::string_view module;
    LineShape shape;
    char type;
  } const cases[] = {
      {"ffff82d040200000 T _start", 0xffff82d040200000, 0, "_start", "", LineShape::kTyped, 'T'},
      {"ffffffffc0201000 t foo\t[xen_privcmd]", 0xffffffffc0201000, 0, "foo", "xen_privcmd",
       LineShape::kTyped, 't'},
      {"ffffffffc0201000 t foo [bpf]\r", 0xffffffffc0201000, 0, "foo", "bpf", LineShape::kTyped,
       't'},
      {"0000000000401000 0000000000000020 T main", 0x401000, 0x20, "main", "", LineShape::kTyped,
       'T'},
      {"401000 T A::operator[](int) const", 0x401000, 0, "A::operator[](int) const", "",
       LineShape::kTyped, 'T'},
      {"401000 W std::get[abi:cxx11]", 0x401000, 0, "std::get[abi:cxx11]", "", LineShape::kTyped,
       'W'},
      {"                 U puts", 0, 0, "puts", "", LineShape::kTyped, 'U'},
      {"0x401000 main", 0x401000, 0, "main", "", LineShape::kUntyped, 0},
      {"c0100000 do_IRQ", 0xc0100000, 0, "do_IRQ", "", LineShape::kUntyped, 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.line);
    const auto got = ParseSymbolLine(c.line, c.shape);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->address, c.address);
    EXPECT_EQ(got->size, c.size);
    EXPECT_EQ(got->type, c.type);
    EXPECT_EQ(got->name, c.name);
    EXPECT_EQ(got->module, c.module);
  }
}

TEST(SymbolLines, RefuseOtherLines) {
  for (const std::string_view line :
       {"", " ", "main", "ffffffff81000000", "ffffffff81000000 T", "ffffffff81000000 T ",
        "ffffffff81000000T x", "12345678901234567 T toolong", "-1 T x", "ffff T bad\x01name",
        "ffff TT name", "ffff 12g T name", "\177ELF\2\1\1", "ffff T [mod]\x7f"}) {
    EXPECT_FALSE(ParseSymbolLine(line, LineShape::kTyped)) << line;
  }
}

TEST(Xensyms, CodeSymbolsAreFunctionsAndOthersAreEnds) {
  const auto table = ReadXensyms(
      "ffff82d040200000 T _stext\n"
      "ffff82d040200000 T _start\n"
      "ffff82d040204010 t common/vmap.c#vm_alloc\n"
      "junk\n"
      "ffff82d040360783 T _etext\n"
      "ffff82d040361000 D __2M_text_end\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->functions.size(), 3);
  EXPECT_EQ(table->functions[2].name, "common/vmap.c#vm_alloc");
  EXPECT_EQ(table->functions[2].binding, Binding::kLocal);
  EXPECT_EQ(table->ends, (std::vector<Address>{0xffff82d040360783, 0xffff82d040361000}));
  EXPECT_EQ(table->stext, 0xffff82d040200000);
  EXPECT_EQ(table->etext, 0xffff82d040360783);
  EXPECT_EQ(table->lines.functions, 4);
  EXPECT_EQ(table->lines.others, 1);
  EXPECT_EQ(table->lines.malformed, 1);
  EXPECT_EQ(table->lines.first_malformed_at, 4);
}

constexpr std::string_view kKallsyms =
    "0000000000000000 A fixed_percpu_data\n"
    "0000000000006000 A cpu_tss_rw\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000010 t helper\n"
    "ffffffff81000100 D table\n"
    "ffffffffc0201000 t open\t[xen_privcmd]\n"
    "ffffffffc0203000 d state\t[xen_privcmd]\n"
    "ffffffffc0301000 t nft_do\t[nf_tables]\n";

TEST(Kallsyms, SeparatesModulesAndSkipsPerCpuOffsets) {
  const auto table = ReadKallsyms(kKallsyms, {{"nf_tables", 0xffffffffc0301000, 0x2000}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->images, testing::ElementsAre("vmlinux", "[xen_privcmd]", "[nf_tables]"));
  ASSERT_EQ(table->functions.size(), 5);
  EXPECT_EQ(table->functions[3].image, 1);
  EXPECT_EQ(table->functions[4].image, 2);
  EXPECT_THAT(table->ends, testing::ElementsAre(0xffffffff81000100, 0xffffffffc0203000,
                                                0xffffffffc0301000, 0xffffffffc0303000));
}

TEST(Kallsyms, RefusesHiddenAddresses) {
  const auto table = ReadKallsyms(
      "0000000000000000 T _stext\n0000000000000000 t helper\n0000000000000000 d x\t[mod]\n");
  EXPECT_EQ(table.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(table.status())), HasSubstr("kptr_restrict"));
}

TEST(SystemMap, ExplainsDebianPlaceholder) {
  const auto table = ReadSystemMap(
      "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n");
  EXPECT_EQ(table.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(table.status())), HasSubstr("stand-in"));
}

TEST(Modules, CountsHiddenAndDamagedLines) {
  const ModuleList list = ReadModules(
      "xen_privcmd 28672 38 xenfs, Live 0xffffffffc0201000\n"
      "fscache 380928 1 9p, Live 0x0000000000000000\n"
      "nf_tables 100 0 - Live 0xffffffffc0301000 (E)\n"
      "damaged line\n");
  ASSERT_EQ(list.modules.size(), 2);
  EXPECT_EQ(list.modules[0].name, "xen_privcmd");
  EXPECT_EQ(list.modules[0].base, 0xffffffffc0201000);
  EXPECT_EQ(list.modules[0].size, 28672);
  EXPECT_EQ(list.modules[1].name, "nf_tables");
  EXPECT_EQ(list.hidden, 1);
  EXPECT_EQ(list.malformed, 1);
}

TEST(Nm, KeepsSizesAndSkipsUndefinedSymbols) {
  const auto table = ReadNm(
      "                 U puts\n"
      "                 w __gmon_start__\n"
      "0000000000401000 0000000000000020 T main\n"
      "0000000000401030 t helper\n"
      "0000000000404000 0000000000000008 B counter\n",
      "gw");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->functions.size(), 2);
  EXPECT_EQ(table->functions[0].size, 0x20);
  EXPECT_EQ(table->functions[1].size, 0);
  EXPECT_THAT(table->ends, testing::ElementsAre(0x404000));
  EXPECT_THAT(table->images, testing::ElementsAre("gw"));
}

TEST(AddressNames, AreAllFunctions) {
  const auto table = ReadAddressNames("ffffffff81000000 _stext\n0xffffffff81000010 helper\n", "k");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->functions.size(), 2);
}

TEST(AllReaders, RefuseOtherText) {
  const std::string text(1000, '\n');
  const std::string binary("\177ELF\0\0\0\0\n\xff\xfe\n", 12);
  for (const std::string& input : {text, binary, std::string("hello\nworld\n")}) {
    EXPECT_FALSE(ReadXensyms(input).ok());
    EXPECT_FALSE(ReadKallsyms(input).ok());
    EXPECT_FALSE(ReadSystemMap(input).ok());
    EXPECT_FALSE(ReadNm(input, "x").ok());
    EXPECT_FALSE(ReadAddressNames(input, "x").ok());
  }
  EXPECT_THAT(std::string(Message(ReadXensyms("").status())), HasSubstr("xenfs"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
