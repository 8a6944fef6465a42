// Code of processes that is in none of their files.
#include "sampler/perf/jit_and_vdso.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"

namespace xenoscope::sampler {
namespace {

TEST(Vdso, IsAnElfFileWithClockFunctions) {
  const auto content = ReadVdso();
  if (content.empty()) GTEST_SKIP() << "no vDSO here";
  const auto elf = symbolizer::ElfFile::Open(content);
  ASSERT_TRUE(elf.ok()) << elf.status();
  const auto symbols = symbolizer::ReadElf(*elf, "[vdso]");
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  std::vector<std::string_view> names;
  for (const auto& symbol : symbols->table.functions) names.push_back(symbol.name);
  EXPECT_THAT(names, testing::Contains(testing::HasSubstr("clock_gettime")));
}

}  // namespace
}  // namespace xenoscope::sampler
