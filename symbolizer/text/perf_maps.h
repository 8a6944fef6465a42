// The functions that compilers made at run time, as they told them in /tmp/perf-PID.map: of all
// processes of a machine, in one text (sampler/perf/jit_and_vdso.h).
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

// The function of a line "START SIZE NAME", both numbers hexadecimal; names may have blanks.
// Nothing when it is no such line. The name is a part of `line`.
std::optional<Symbol> ReadPerfMapLine(std::string_view line);

class PerfMaps {
 public:
  // Takes copies. A function that is told of later takes the place of one at the same address: the
  // memory was used again. Lines that are none are counted. O(n log n).
  static PerfMaps Read(std::string_view text);

  // The functions of the process; null: it told none.
  const SymbolIndex* FunctionsOf(uint32_t pid) const;
  const LineCounts& lines() const { return lines_; }
  // There would have been more: it was too long.
  bool cut() const { return cut_; }

 private:
  absl::flat_hash_map<uint32_t, SymbolIndex> indexes_;
  LineCounts lines_;
  bool cut_ = false;
};

}  // namespace xenoscope::symbolizer
