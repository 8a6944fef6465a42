// Fuzzes the files of kernels' modules. There is no crash, no hang and no read outside; sections
// with code have addresses of their own, at which the file has their bytes, and entries of ORC are
// inside them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/elf/object_sections.h"
#include "symbolizer/image_file.h"
#include "symbolizer/unwind/unwind_table.h"

namespace {

namespace symbolizer = xenoscope::symbolizer;
using xenoscope::Address;

// Loads the sections one behind the other, as its own symbols say that they are.
std::vector<symbolizer::LoadedFunction> LoadedAt(const symbolizer::ElfSymbols& symbols) {
  std::vector<symbolizer::LoadedFunction> functions;
  for (const auto& symbol : symbols.table.functions) {
    functions.push_back({symbol.name, symbol.address});
  }
  return functions;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = symbolizer::ModuleFile::Open(
      symbolizer::FileContent::FromString(std::string(xenoscope::AsText(bytes))), "module.ko");
  if (!file.ok()) return 0;
  const auto elf = symbolizer::ElfFile::OpenAny((*file)->content());
  if (!elf.ok()) std::abort();
  const symbolizer::ObjectSections objects(*elf, (*file)->content());
  const auto image = symbolizer::ImageFile::OpenModule((*file)->shared_content(), "module.ko",
                                                       symbolizer::FileFinder());
  if (!image.ok()) std::abort();
  const auto begins = (*file)->OrcBegins();
  if (begins) {
    const auto is_outside = [&](Address begin) { return begin < objects.text_begin(); };
    if (std::ranges::any_of(*begins, is_outside)) std::abort();
    for (const auto layout : {symbolizer::OrcLayout::kEnd, symbolizer::OrcLayout::kSignalAndEnd,
                              symbolizer::OrcLayout::kFiveTypes}) {
      const auto entries = symbolizer::ReadOrc(*begins, (*file)->OrcEntries(), layout);
      if (!entries) continue;
      const std::string table = symbolizer::MakeUnwindTable(*entries);
      if (!symbolizer::UnwindTable::Open(xenoscope::AsBytes(table)).ok()) std::abort();
    }
  }
  const auto symbols = symbolizer::ReadLivepatchElf(*elf, "module", 0xffffffffc0201000);
  if (!symbols.ok()) return 0;
  const auto places = (*file)->PlacesOf(LoadedAt(*symbols));
  if (!places.ok()) return 0;
  Address end = 0;
  for (const symbolizer::LoadedCode& code : *places) {
    if (code.begin < end || code.end < code.begin) std::abort();
    end = code.end;
    const uint64_t length = code.end - code.begin;
    if ((*image)->CodeAt(code.address, length).size() != length) std::abort();
    if (xenoscope::symbolizer::DebugInfo* const debug = (*image)->debug_info()) {
      for (Address at = code.address; at < code.address + std::min<uint64_t>(length, 64); ++at) {
        debug->FramesAt(at);
      }
    }
  }
  return 0;
}
