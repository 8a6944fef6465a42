// Fuzzes ELF files. There is no crash and no hang; functions stay inside their sections.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/elf/trimmed_file.h"
#include "symbolizer/symbol_index.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbolizer = xenoscope::symbolizer;
  const auto file = std::as_bytes(std::span(data, size));
  if (symbolizer::TrimmedFile(file, {}).size() != size) std::abort();
  if (const auto any = symbolizer::ElfFile::OpenAny(file); any.ok()) {
    const auto placed = symbolizer::ReadLivepatchElf(*any, "image", 0xffff82d0405b0000);
    if (placed.ok() && placed->table.functions.empty()) std::abort();
    if (symbolizer::IsLivepatch(*any) && size < 64) std::abort();
  }
  const auto elf = symbolizer::ElfFile::Open(file);
  if (!elf.ok()) return 0;
  if (elf->BuildId().size() > 2 * size) std::abort();
  const auto symbols = symbolizer::ReadElf(*elf, "image");
  if (!symbols.ok()) return 0;
  for (const auto& function : symbols->table.functions) {
    if (function.size > ~function.address) std::abort();
  }
  const auto index = symbolizer::SymbolIndex::Build(symbols->table);
  if (!index.ok()) return 0;
  for (const auto& function : symbols->table.functions) {
    const uint32_t found = index->Find(function.address);
    if (found != symbolizer::SymbolIndex::kNoSymbol && index->Start(found) > function.address) {
      std::abort();
    }
  }
  return 0;
}
