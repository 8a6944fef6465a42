// A reader of the output of nm.
#include "base/error.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {

absl::StatusOr<SymbolTable> ReadNm(std::string_view text, std::string_view image) {
  SymbolTable table;
  table.images.emplace_back(image);
  ForEachLine(text, [&](std::string_view line, uint64_t number) {
    const auto symbol = ParseSymbolLine(line, LineShape::kTyped);
    if (!symbol) {
      table.lines.Malformed(number);
      return;
    }
    // 'i' is the resolver of an indirect function; 'w' without an address is an undefined weak
    // symbol.
    if ((IsCode(symbol->type) || symbol->type == 'i') && symbol->address != 0) {
      ++table.lines.functions;
      table.AddCode({.address = symbol->address,
                     .size = symbol->size,
                     .name = symbol->name,
                     .binding = BindingOf(symbol->type)});
      return;
    }
    ++table.lines.others;
    if (symbol->address != 0) table.ends.push_back(symbol->address);
  });
  XENOSCOPE_RETURN_IF_ERROR(CheckIsSymbolText(table.lines, "address [size] type name"));
  if (table.functions.empty()) return NotFoundError("nm found no functions: the file was stripped");
  return table;
}

}  // namespace xenoscope::symbolizer
