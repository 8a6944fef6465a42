// Several domains with the same addresses, and the reasons for addresses without a function.
#include "symbolizer/domain_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr DomainId kD1{1};
constexpr DomainId kD2{2};

std::shared_ptr<const SymbolIndex> IndexOf(const absl::StatusOr<SymbolTable>& table) {
  auto index = SymbolIndex::Build(table.value());
  return std::make_shared<const SymbolIndex>(std::move(index).value());
}

std::string At(DomainSymbols& symbols, DomainId domain, Mode mode, Address address) {
  const Function& function = symbols.Describe(symbols.Resolve(domain, mode, address));
  return function.image + "!" + function.name;
}

std::string Why(DomainSymbols& symbols, DomainId domain, Mode mode, Address address) {
  return symbols.Describe(symbols.Resolve(domain, mode, address)).unresolved;
}

TEST(DomainSymbols, AddressesAreByDomainAndMode) {
  DomainSymbols symbols;
  symbols.Add(kDom0, Mode::kXen,
              IndexOf(ReadXensyms("ffff82d040200000 T start\nffff82d040200100 D end\n")));
  symbols.Add(kD1, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T one\nffffffff81000100 D end\n")));
  symbols.Add(kD2, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T two\nffffffff81000100 D end\n")));
  symbols.Add(kD1, Mode::kUser, IndexOf(ReadNm("401000 T main\n", "gw")));
  symbols.Add(kD2, Mode::kUser, IndexOf(ReadNm("1000 T main\n", "pie")), 0x400000);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(At(symbols, kD1, Mode::kKernel, 0xffffffff81000010), "vmlinux!one");
    EXPECT_EQ(At(symbols, kD2, Mode::kKernel, 0xffffffff81000010), "vmlinux!two");
    EXPECT_EQ(At(symbols, kD1, Mode::kUser, 0x401000), "gw!main");
    EXPECT_EQ(At(symbols, kD2, Mode::kUser, 0x401000), "pie!main");
    // Xen's symbols are the same for all domains.
    EXPECT_EQ(At(symbols, kD1, Mode::kXen, 0xffff82d040200010), "xen!start");
    EXPECT_EQ(At(symbols, kD2, Mode::kXen, 0xffff82d040200010), "xen!start");
  }
}

TEST(DomainSymbols, CommonSymbolsAreForDomainsWithoutTheirOwn) {
  DomainSymbols symbols;
  symbols.Add(kEveryDomain, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T common\nffffffff81000100 D end\n")));
  symbols.Add(kD1, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T one\nffffffff81000100 D end\n")));
  EXPECT_EQ(At(symbols, kD1, Mode::kKernel, 0xffffffff81000010), "vmlinux!one");
  EXPECT_EQ(At(symbols, kD2, Mode::kKernel, 0xffffffff81000010), "vmlinux!common");
  EXPECT_EQ(At(symbols, kD2, Mode::kUser, 0x401000), "[unknown]![no symbols]");
}

TEST(DomainSymbols, DomainsOfOneKernelShareFunctions) {
  DomainSymbols symbols;
  const auto kernel = IndexOf(ReadKallsyms("ffffffff81000000 T one\nffffffff81000100 D end\n"));
  symbols.Add(kD1, Mode::kKernel, kernel);
  symbols.Add(kD2, Mode::kKernel, kernel, 0x200000);
  EXPECT_EQ(symbols.Resolve(kD1, Mode::kKernel, 0xffffffff81000010),
            symbols.Resolve(kD2, Mode::kKernel, 0xffffffff81200020));
}

TEST(DomainSymbols, BpfProgramsHaveFramePointers) {
  DomainSymbols symbols;
  symbols.Add(kD1, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T one\nffffffff81000100 D end\n"
                                   "ffffffffc0001000 t bpf_prog_6deef7357e7b4530_count\t[bpf]\n"
                                   "ffffffffc0002000 t bpf_trampoline_6442\t[bpf]\n"
                                   "ffffffffc0003000 t bpf_dispatcher_xdp\t[bpf]\n"
                                   "ffffffffc0004000 t probe\t[nf]\n")));
  EXPECT_TRUE(symbols.KernelCodeAt(kD1, 0xffffffffc0001020).frame_pointers);
  EXPECT_TRUE(symbols.KernelCodeAt(kD1, 0xffffffffc0002020).frame_pointers);
  for (const Address address : {0xffffffff81000010, 0xffffffffc0003010, 0xffffffffc0004010}) {
    EXPECT_FALSE(symbols.KernelCodeAt(kD1, address).frame_pointers) << address;
  }
  EXPECT_FALSE(symbols.KernelCodeAt(kD2, 0xffffffffc0001020).frame_pointers) << "not known";
}

TEST(DomainSymbols, ReportsReasonWithoutFunction) {
  DomainSymbols symbols;
  symbols.Add(kDom0, Mode::kXen,
              IndexOf(ReadXensyms("ffff82d040200000 T start\nffff82d040200100 D end\n"
                                  "ffff82d040300000 T later\nffff82d040300100 D end\n")));
  symbols.Add(kD1, Mode::kKernel,
              IndexOf(ReadKallsyms("ffffffff81000000 T one\nffffffff81000100 D end\n")));
  symbols.Add(kD1, Mode::kUser, IndexOf(ReadNm("401000 T main\n", "gw")));
  symbols.Add(kD1, Mode::kUser, IndexOf(ReadNm("401000 T start\n", "sh")));
  symbols.SetMissingReason(kD2, Mode::kKernel, "kallsyms: kptr_restrict hides it");
  struct {
    DomainId domain;
    Mode mode;
    Address address;
    const char* name;
    const char* reason;
  } const cases[] = {
      {kD2, Mode::kUser, 0x1000, "[unknown]![no symbols]", "no symbols for d2's user mode"},
      {kD2, Mode::kKernel, 0xffffffff81000000, "[unknown]![no symbols]",
       "no symbols for d2's kernel: kallsyms: kptr_restrict hides it"},
      {kD1, Mode::kXen, 0xffff82d040200100, "xen![gap]", "between the functions of xen"},
      {kD1, Mode::kXen, 0xffff82d0401fffff, "[unknown]![outside]", "before the first function"},
      {kD1, Mode::kXen, 0xffff82d050000000, "[unknown]![outside]", "in a livepatch"},
      {kD1, Mode::kKernel, 0xffffffff81000100, "[unknown]![outside]", "KASLR"},
      {kD1, Mode::kKernel, 0xffffffffc0200000, "[unknown]![outside]", "modules"},
      {kD1, Mode::kKernel, 0xffff82d040200000, "[unknown]![outside]", "address of Xen"},
      {kD1, Mode::kKernel, 0x7c00, "[unknown]![outside]", "low address"},
      {kD1, Mode::kUser, 0x401000, "[unknown]![ambiguous]", "gw and sh of d1's user mode"},
      {kD1, Mode::kUser, 0xffffffff81000000, "[unknown]![outside]", "address of the kernel"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.reason);
    EXPECT_EQ(At(symbols, c.domain, c.mode, c.address), c.name);
    EXPECT_THAT(Why(symbols, c.domain, c.mode, c.address), HasSubstr(c.reason));
  }
  const FunctionId nested = symbols.ResolveNested(kD1, Mode::kKernel, 0xffffffff81000000);
  EXPECT_EQ(symbols.Describe(nested).image, "[nested guest]");
  EXPECT_EQ(symbols.Describe(nested).unresolved, "it is code of a guest that d1 runs itself");
  // There is one function for each reason, not for each address.
  EXPECT_EQ(symbols.Resolve(kD2, Mode::kUser, 0x1000), symbols.Resolve(kD2, Mode::kUser, 0x2000));
}

TEST(DomainSymbols, DetectsSymbolsOfOtherBoot) {
  const auto kernel = IndexOf(
      ReadKallsyms("ffffffff81000000 T one\nffffffff81010000 T two\nffffffff81020000 D e\n"));
  DomainSymbols fits;
  fits.Add(kD1, Mode::kKernel, kernel);
  DomainSymbols moved;
  moved.Add(kD1, Mode::kKernel, kernel);
  for (Address i = 0; i < 100; ++i) {
    fits.Resolve(kD1, Mode::kKernel, 0xffffffff81000000 + i * 0x100);
    moved.Resolve(kD1, Mode::kKernel, 0xffffffff9a000000 + i * 0x100);
  }
  EXPECT_THAT(fits.Mismatches(), IsEmpty());
  ASSERT_THAT(moved.Mismatches(), SizeIs(1));
  EXPECT_THAT(moved.Mismatches()[0], HasSubstr("100 of 100 addresses of d1's kernel"));
}

TEST(DomainSymbols, SumsUpManyMismatches) {
  const auto kernel = IndexOf(
      ReadKallsyms("ffffffff81000000 T one\nffffffff81010000 T two\nffffffff81020000 D e\n"));
  const auto mismatches_of = [&kernel](uint16_t domains) {
    DomainSymbols moved;
    for (uint16_t id = 1; id <= domains; ++id) {
      moved.Add(DomainId{id}, Mode::kKernel, kernel);
      for (Address i = 0; i < 100; ++i) {
        moved.Resolve(DomainId{id}, Mode::kKernel, 0xffffffff9a000000 + i * 0x100);
      }
    }
    return moved.Mismatches();
  };
  EXPECT_THAT(mismatches_of(4), SizeIs(4));
  const std::vector<std::string> many = mismatches_of(9);
  ASSERT_THAT(many, SizeIs(4));
  EXPECT_THAT(many[0], HasSubstr("d1's kernel"));
  EXPECT_EQ(many[3], "the same is true of 6 more kernels and their symbols");
}

TEST(DomainSymbols, DemanglesNames) {
  DomainSymbols symbols;
  symbols.Add(kD1, Mode::kUser, IndexOf(ReadNm("1000 T _ZN3foo3barEi\n2000 T _Znot\n", "x")));
  EXPECT_EQ(At(symbols, kD1, Mode::kUser, 0x1000), "x!foo::bar(int)");
  EXPECT_EQ(At(symbols, kD1, Mode::kUser, 0x2000), "x!_Znot");
}

}  // namespace
}  // namespace xenoscope::symbolizer
