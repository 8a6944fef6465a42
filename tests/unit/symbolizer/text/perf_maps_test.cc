// The functions that JIT compilers write down.
#include "symbolizer/text/perf_maps.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace xenoscope::symbolizer {
namespace {

std::string At(const PerfMaps& maps, uint32_t pid, Address address) {
  const SymbolIndex* functions = maps.FunctionsOf(pid);
  if (functions == nullptr) return "no functions";
  const uint32_t found = functions->Find(address);
  return found == SymbolIndex::kNoSymbol ? "none" : std::string(functions->Name(found));
}

TEST(PerfMaps, FunctionsAreByProcess) {
  const PerfMaps maps = PerfMaps::Read(
      "# 7\n"
      "1000 20 LazyCompile:~run a.js:1\n"
      "0x1020 0x10 py::main:/b.py\n"
      "# 8\n"
      "1000 40 other\n");
  EXPECT_EQ(At(maps, 7, 0x1000), "LazyCompile:~run a.js:1");
  EXPECT_EQ(At(maps, 7, 0x101f), "LazyCompile:~run a.js:1");
  EXPECT_EQ(At(maps, 7, 0x1020), "py::main:/b.py");
  EXPECT_EQ(At(maps, 7, 0x1030), "none");
  EXPECT_EQ(At(maps, 8, 0x1020), "other");
  EXPECT_EQ(At(maps, 9, 0x1000), "no functions");
  EXPECT_EQ(maps.lines().functions, 3U);
  EXPECT_EQ(maps.lines().malformed, 0U);
  EXPECT_FALSE(maps.cut());
}

TEST(PerfMaps, LaterFunctionReplacesEarlier) {
  const PerfMaps maps = PerfMaps::Read("# 7\n1000 20 old\n1000 10 new\n");
  EXPECT_EQ(At(maps, 7, 0x1000), "new");
  EXPECT_EQ(At(maps, 7, 0x1018), "none");
}

TEST(PerfMaps, CountsMalformedLines) {
  struct Case {
    std::string_view line;
    bool is_junk;
  };
  constexpr Case kCases[] = {
      {"1000 20 name", false},
      {"1000 20 ", true},                   // without a name
      {"1000 0 empty", true},               // of no bytes
      {"1000 name", true},                  // without a size
      {"ffffffffffffffff 2 wraps", true},   // beyond the end of memory
      {"11112222333344445 1 large", true},  // a number of more than 64 bits
      {"# seven", true},
      {"", true},
      {"\x80\xff\0\x01", true},
  };
  for (const Case& each : kCases) {
    const PerfMaps maps = PerfMaps::Read("# 7\n" + std::string(each.line) + "\n");
    EXPECT_EQ(maps.lines().malformed, each.is_junk ? 1U : 0U) << each.line;
    EXPECT_EQ(maps.lines().first_malformed_at, each.is_junk ? 2U : 0U) << each.line;
  }
}

TEST(PerfMaps, FunctionWithoutProcessIsMalformed) {
  EXPECT_EQ(PerfMaps::Read("1000 20 name\n").lines().malformed, 1U);
}

TEST(PerfMaps, ReportsTruncation) {
  EXPECT_TRUE(PerfMaps::Read("# 7\n1000 20 name\n# cut\n").cut());
}

}  // namespace
}  // namespace xenoscope::symbolizer
