// Reads a kernel's System.map: its symbols at the addresses that it was linked for.
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {

// The lines are those of kallsyms, without modules.
absl::StatusOr<SymbolTable> ReadSystemMap(std::string_view text) { return ReadKallsyms(text); }

}  // namespace xenoscope::symbolizer
