// A reader of symbol files in xenalyze's format: an address and a name on each line.
#include "base/error.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {

absl::StatusOr<SymbolTable> ReadAddressNames(std::string_view text, std::string_view image) {
  SymbolTable table;
  table.images.emplace_back(image);
  ForEachLine(text, [&](std::string_view line, uint64_t number) {
    const auto symbol = ParseSymbolLine(line, LineShape::kUntyped);
    if (!symbol) {
      table.lines.Malformed(number);
      return;
    }
    ++table.lines.functions;
    table.AddCode({.address = symbol->address, .name = symbol->name, .binding = Binding::kGlobal});
  });
  XENOSCOPE_RETURN_IF_ERROR(CheckIsSymbolText(table.lines, "address name"));
  return table;
}

}  // namespace xenoscope::symbolizer
