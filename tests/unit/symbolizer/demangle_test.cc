// Names of several compilers, each of which has its own mangling.
#include "symbolizer/demangle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace xenoscope::symbolizer {
namespace {

TEST(Demangled, DemanglesCxx) {
  EXPECT_EQ(Demangled("_ZN2ns1fEi"), "ns::f(int)");
  EXPECT_EQ(Demangled("_ZN2ns1fEi.cold"), "ns::f(int) [clone .cold]");
}

TEST(Demangled, DemanglesLegacyRustWithoutHash) {
  EXPECT_EQ(Demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(Demangled("_ZN10_$LT$T$GT$3fmt17h0123456789abcdefE"), "<T>::fmt");
}

TEST(Demangled, DropsLtoSuffixOfRust) {
  EXPECT_EQ(
      Demangled("_ZN4core3fmt5Write10write_char17h624a9a2565190607E.llvm.8446121111891974328"),
      "core::fmt::Write::write_char");
  EXPECT_EQ(Demangled("_RNvC6_123foo3bar.llvm.9D1C9369"), "123foo::bar");
  for (const char* name : {"_ZN4core3fmt17h624a9a2565190607E.llvm.", "_ZN4core17hE.llvm.12",
                           "main.llvm.12", ".llvm.1"}) {
    EXPECT_EQ(Demangled(name), name);
  }
}

// RFC 2603's examples.
TEST(Demangled, DemanglesRustV0) {
  EXPECT_EQ(Demangled("_RNvC6_123foo3bar"), "123foo::bar");
  EXPECT_EQ(Demangled("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_"
                      "5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std"),
            "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>");
}

// "for<'a> fn(&'a u8)". With more lifetimes than three digits of base 62 libiberty would count
// them, which in a path that is not printed nothing ends.
TEST(Demangled, LeavesNamesThatBindTooManyLifetimes) {
  EXPECT_EQ(Demangled("_RMC0FG_RL0_hEu"), "<for<'a> fn(&'a u8)>");
  EXPECT_EQ(Demangled("_RMC0FGzzz_RL0_hEu"), "_RMC0FGzzz_RL0_hEu");
}

TEST(Demangled, RestoresGoDots) {
  EXPECT_EQ(Demangled("gopkg.in/yaml%2ev3.(*Node).Decode"), "gopkg.in/yaml.v3.(*Node).Decode");
  EXPECT_EQ(Demangled("main.main"), "main.main");
}

TEST(Demangled, KeepsPlainNames) {
  for (const char* name : {"main", "_start", "_Z", "_R", "_RNvC", "_ZN4core17hE", "100%2e", ""}) {
    EXPECT_EQ(Demangled(name), name);
  }
}

// RFC 2603: a back-reference is B and the number of the byte after _R, in base 62 less one.
std::string BackReference(size_t at) {
  constexpr const char* kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits;
  for (size_t number = at - 1;; number = number / 62) {
    digits.insert(digits.begin(), kDigits[number % 62]);
    if (number < 62) break;
  }
  return "B" + digits + "_";
}

// Each type is a pair of the one before: 2^60 letters.
TEST(Demangled, KeepsNamesThatExpandTooFar) {
  std::string name = "INvC1a1b";
  size_t last = name.size();
  name += "TaaE";
  for (int i = 0; i < 60; ++i) {
    const size_t next = name.size();
    name += "T" + BackReference(last) + BackReference(last) + "E";
    last = next;
  }
  name = "_R" + name + "E";
  EXPECT_EQ(Demangled(name), name);
}

}  // namespace
}  // namespace xenoscope::symbolizer
