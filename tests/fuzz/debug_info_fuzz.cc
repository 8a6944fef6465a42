// Fuzzes ELF files with code and DWARF. There is no crash, no hang and no endless memory; frames
// are few and their texts are the file's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "symbolizer/disassembly.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/image_file.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbolizer = xenoscope::symbolizer;
  const auto bytes = std::as_bytes(std::span(data, size));
  // The root does not exist, so that no other file is opened.
  const auto image = symbolizer::ImageFile::Open(
      symbolizer::FileContent::FromString(std::string(xenoscope::AsText(bytes))), "/bin/file",
      symbolizer::FileFinder("/no/such/root"));
  if (!image.ok()) return 0;
  constexpr xenoscope::Address kText = 0x400080;  // address of the corpus's code
  std::vector<xenoscope::Address> addresses = {0, 1, ~xenoscope::Address{0}};
  for (xenoscope::Address at = kText; at < kText + 1024; at += 16) addresses.push_back(at);
  if (const auto symbols = (*image)->ReadSymbols("image"); symbols.ok()) {
    for (const auto& function : symbols->table.functions) addresses.push_back(function.address);
  }
  const auto disassembler = symbolizer::Disassembler::Load().value();
  for (const xenoscope::Address address : addresses) {
    const auto code = (*image)->CodeAt(address, 64);
    if (disassembler.Disassemble(code, address).size() > code.size()) std::abort();
  }
  symbolizer::DebugInfo* debug_info = (*image)->debug_info();
  if (debug_info == nullptr) return 0;
  debug_info->ReadUnitsOf(addresses);
  for (const xenoscope::Address address : addresses) {
    size_t length = 0;
    const auto frames = debug_info->FramesAt(address);
    if (frames.size() > 256) std::abort();
    for (const auto& frame : frames) {
      length += frame.function.size() + frame.file.size();
    }
    if (length > frames.size() * (size_t{1} << 20)) std::abort();
  }
  // Some 50 bytes for each byte of sections, which decompress to some 12 times their size.
  if (debug_info->MemoryUsed() > (size + (size_t{1} << 20)) * 1024) std::abort();
  return 0;
}
