// The index as a table: symbols in, ranges out; and compared with a linear search.
#include "symbolizer/symbol_index.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace xenoscope::symbolizer {
namespace {

SymbolTable TableOf(std::vector<Symbol> functions, std::vector<Address> ends = {}) {
  SymbolTable table;
  table.images = {"image"};
  table.functions = std::move(functions);
  table.ends = std::move(ends);
  return table;
}

std::string NameAt(const SymbolIndex& index, Address address) {
  const uint32_t symbol = index.Find(address);
  return symbol == SymbolIndex::kNoSymbol ? "-" : std::string(index.Name(symbol));
}

TEST(SymbolIndex, DerivesRangesOfSymbols) {
  struct Expected {
    Address address;
    const char* name;
  };
  struct {
    const char* what;
    std::vector<Symbol> functions;
    std::vector<Address> ends;
    std::vector<Expected> expected;
  } const cases[] = {
      {"sizes are respected",
       {{100, 50, "a"}, {200, 10, "b"}},
       {},
       {{0, "-"},
        {99, "-"},
        {100, "a"},
        {149, "a"},
        {150, "-"},
        {200, "b"},
        {209, "b"},
        {210, "-"}}},
      {"an inner function cuts the outer one in two",
       {{100, 100, "outer"}, {120, 10, "inner"}},
       {},
       {{119, "outer"},
        {120, "inner"},
        {129, "inner"},
        {130, "outer"},
        {199, "outer"},
        {200, "-"}}},
      {"of two that overlap the later one holds",
       {{100, 50, "a"}, {120, 60, "b"}},
       {},
       {{119, "a"}, {120, "b"}, {149, "b"}, {150, "b"}, {179, "b"}, {180, "-"}}},
      {"without a size to the next symbol",
       {{100, 0, "a"}, {120, 0, "b"}},
       {130},
       {{100, "a"}, {119, "a"}, {120, "b"}, {129, "b"}, {130, "-"}}},
      {"without a size no farther than the bound",
       {{100, 0, "a"}, {100 + 2 * kMaxUnsizedBytes, 0, "b"}},
       {},
       {{99 + kMaxUnsizedBytes, "a"}, {100 + kMaxUnsizedBytes, "-"}}},
      {"data ends a function without a size, and not one with a size",
       {{100, 0, "a"}, {200, 100, "b"}},
       {110, 210},
       {{109, "a"}, {110, "-"}, {210, "b"}, {299, "b"}}},
      {"a label in a sized function is not a function",
       {{100, 100, "a"}, {150, 0, "label"}, {200, 0, "next"}},
       {},
       {{150, "a"}, {199, "a"}, {200, "next"}}},
      {"the best of several names",
       {{100, 0, "_stext", Binding::kGlobal},
        {100, 0, "__start", Binding::kGlobal},
        {100, 0, "start", Binding::kLocal},
        {200, 0, "weak", Binding::kWeak},
        {200, 0, "global", Binding::kGlobal},
        {300, 10, "_sized"},
        {300, 0, "unsized"}},
       {400},
       {{100, "start"}, {200, "global"}, {309, "_sized"}, {310, "-"}}},
      {"at the end of the address space",
       {{~Address{0} - 10, 100, "last"}},
       {},
       {{~Address{0} - 11, "-"}, {~Address{0} - 1, "last"}, {~Address{0}, "-"}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const auto index = SymbolIndex::Build(TableOf(c.functions, c.ends));
    ASSERT_TRUE(index.ok()) << index.status();
    for (const Expected& e : c.expected) {
      EXPECT_EQ(NameAt(*index, e.address), e.name) << "at " << e.address;
    }
  }
}

TEST(SymbolIndex, RefusesListWithoutFunctions) {
  EXPECT_FALSE(SymbolIndex::Build(TableOf({})).ok());
  EXPECT_FALSE(SymbolIndex::Build(TableOf({{0, 10, "null"}})).ok());
}

// Looks up every symbol of random tables at every address, and compares with a search through all
// of them.
TEST(SymbolIndex, AgreesWithALinearSearch) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  for (int round = 0; round < 300; ++round) {
    std::vector<Symbol> symbols;
    std::vector<std::string> names(12);
    for (size_t i = 0; i < names.size(); ++i) {
      names[i] = std::string(1, static_cast<char>('a' + i));
      symbols.push_back({1 + random() % 60, 1 + random() % 30, names[i]});
    }
    const auto index = SymbolIndex::Build(TableOf(symbols));
    ASSERT_TRUE(index.ok());
    for (Address address = 0; address < 100; ++address) {
      const Symbol* best = nullptr;
      for (const Symbol& s : symbols) {
        if (address < s.address || address >= s.address + s.size) continue;
        const bool better =
            best == nullptr || s.address > best->address ||
            (s.address == best->address &&
             (s.size < best->size || (s.size == best->size && s.name < best->name)));
        if (better) best = &s;
      }
      ASSERT_EQ(NameAt(*index, address), best == nullptr ? "-" : std::string(best->name))
          << "round " << round << " address " << address;
    }
  }
}

}  // namespace
}  // namespace xenoscope::symbolizer
