// A reader of a kernel's System.map: symbols at the addresses that the kernel was linked for.
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {

// The lines are those of kallsyms, without modules.
absl::StatusOr<SymbolTable> ReadSystemMap(std::string_view text) { return ReadKallsyms(text); }

}  // namespace xenoscope::symbolizer
