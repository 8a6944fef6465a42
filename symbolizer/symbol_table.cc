#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {
namespace {

// Returns whether it is a mark that linker scripts set where text ends: xen/arch/x86/xen.lds.S, and
// the kernel's include/asm-generic/vmlinux.lds.h (__sched_text_end and similar ones).
bool IsEndOfText(std::string_view name) {
  return name == "_etext" || name == "etext" || name == "__etext" || name == "_einittext" ||
         name == "_etextentry" || name == "__image_base__" ||
         (name.starts_with("__") && name.ends_with("text_end"));
}

}  // namespace

void SymbolTable::AddCode(const Symbol& symbol) {
  if (symbol.name == "_stext" || (symbol.name == "_text" && !stext)) stext = symbol.address;
  if (symbol.name == "_etext") etext = symbol.address;
  if (IsEndOfText(symbol.name)) {
    ends.push_back(symbol.address);
  } else {
    functions.push_back(symbol);
  }
}

}  // namespace xenoscope::symbolizer
