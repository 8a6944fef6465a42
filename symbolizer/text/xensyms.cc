// A reader of the hypervisor's own symbols: /proc/xen/xensyms of dom0.
#include "base/error.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {

absl::StatusOr<SymbolTable> ReadXensyms(std::string_view text) {
  if (text.empty()) {
    return NotFoundError(
        "xensyms is empty: dom0's kernel needs CONFIG_XEN_SYMS and a mounted xenfs "
        "(mount -t xenfs xenfs /proc/xen); xen-syms can be given instead");
  }
  SymbolTable table;
  table.images.emplace_back(kXenImage);
  ForEachLine(text, [&](std::string_view line, uint64_t number) {
    const auto symbol = ParseSymbolLine(line, LineShape::kTyped);
    if (!symbol) {
      table.lines.Malformed(number);
    } else if (IsCode(symbol->type)) {
      ++table.lines.functions;
      table.AddCode(
          {.address = symbol->address, .name = symbol->name, .binding = BindingOf(symbol->type)});
    } else {
      ++table.lines.others;
      table.ends.push_back(symbol->address);
    }
  });
  XENOSCOPE_RETURN_IF_ERROR(CheckIsSymbolText(table.lines, "address type name"));
  if (table.functions.empty()) return NotFoundError("xensyms has no functions");
  return table;
}

}  // namespace xenoscope::symbolizer
