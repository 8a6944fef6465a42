// Fuzzes symbol texts. There is no crash, every line is counted, and an index finds what was read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "symbolizer/livepatches.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/text/initcalls.h"
#include "symbolizer/text/perf_maps.h"
#include "symbolizer/text/text_symbols.h"

namespace {

using xenoscope::symbolizer::SymbolIndex;
using xenoscope::symbolizer::SymbolTable;

void Check(const absl::StatusOr<SymbolTable>& table, uint64_t lines) {
  if (!table.ok()) return;
  const auto& counts = table->lines;
  if (counts.functions + counts.others + counts.malformed != lines) std::abort();
  const auto index = SymbolIndex::Build(*table);
  if (!index.ok()) return;
  for (const auto& function : table->functions) {
    for (const uint64_t address : {function.address - 1, function.address}) {
      const uint32_t found = index->Find(address);
      if (found == SymbolIndex::kNoSymbol) continue;
      if (index->Start(found) > address || index->Name(found).empty()) std::abort();
      if (address < index->begin() || address >= index->end()) std::abort();
    }
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbolizer = xenoscope::symbolizer;
  const auto text = xenoscope::AsText(std::as_bytes(std::span(data, size)));
  const auto ends = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  const uint64_t lines = ends + (text.empty() || text.ends_with('\n') ? 0 : 1);
  Check(symbolizer::ReadXensyms(text), lines);
  Check(symbolizer::ReadKallsyms(text, symbolizer::ReadModules(text).modules), lines);
  Check(symbolizer::ReadNm(text, "image"), lines);
  Check(symbolizer::ReadAddressNames(text, "image"), lines);
  // No function is outside its livepatch, and no two livepatches are at one place.
  const auto livepatches = symbolizer::ReadLivepatches(text);
  if (livepatches.patches.size() + livepatches.displaced + livepatches.malformed > lines)
    std::abort();
  xenoscope::Address last = 0;
  for (const auto& patch : livepatches.patches) {
    if (patch.begin < patch.end && patch.begin < last) std::abort();
    last = std::max(last, patch.end);
    for (const auto& function : patch.functions) {
      if (function.address < patch.begin || function.size > patch.end - function.address) {
        std::abort();
      }
    }
  }
  // Initcalls are functions with names, in the order of their addresses.
  xenoscope::Address before = 0;
  for (const xenoscope::Initcall& initcall : symbolizer::ReadInitcalls(text)) {
    if (initcall.address < before || initcall.function.empty() || initcall.levels.empty()) {
      std::abort();
    }
    before = initcall.address;
  }
  // These are the lines of /tmp/perf-PID.map.
  const auto maps = symbolizer::PerfMaps::Read(text);
  if (maps.lines().functions + maps.lines().others + maps.lines().malformed != lines) std::abort();
  if (const SymbolIndex* functions = maps.FunctionsOf(7)) {
    const uint32_t found = functions->Find(functions->begin());
    if (found != SymbolIndex::kNoSymbol && functions->Name(found).empty()) std::abort();
  }
  return 0;
}
