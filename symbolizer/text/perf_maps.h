// The functions that JIT compilers wrote to /tmp/perf-PID.map: those of all processes of a machine,
// in one text (sampler/perf/jit_and_vdso.h).
//
//   # 1234
//   7f1c40001000 2c0 LazyCompile:~run server.js:12
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

inline constexpr std::string_view kJitImage = "[jit]";

// Returns the function of a line "START SIZE NAME", both numbers hexadecimal; names may have
// blanks. Nothing when it is not such a line. The name points into `line`.
std::optional<Symbol> ReadPerfMapLine(std::string_view line);

class PerfMaps {
 public:
  // Reads a text and copies the names. Of functions at one address the later one counts, as the
  // memory was used again. Lines that are not functions are counted. O(n log n).
  static PerfMaps Read(std::string_view text);

  // Returns the functions of the process; null: it has none.
  [[nodiscard]] const SymbolIndex* FunctionsOf(uint32_t pid) const;
  [[nodiscard]] const LineCounts& lines() const { return lines_; }
  // Returns whether the text was cut off, because it was too long.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  absl::flat_hash_map<uint32_t, SymbolIndex> indexes_;
  LineCounts lines_;
  bool cut_ = false;
};

}  // namespace xenoscope::symbolizer
