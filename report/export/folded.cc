#include "report/export/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "report/markup.h"

namespace xenoscope::report {

std::string ToFolded(const FlameGraph& graph) {
  std::vector<std::string> names;
  for (const FlameFrame& frame : graph.frames) {
    std::string& name = names.emplace_back(Printable(frame.name));
    std::ranges::replace(name, ';', ':');  // ';' separates frames
  }
  std::string out;
  for (const FlameLine& line : graph.lines) {
    for (const uint32_t& frame : line.frames) {
      if (&frame != line.frames.data()) out += ';';
      out += names[frame];
    }
    fmt::format_to(std::back_inserter(out), " {}\n", line.weight);
  }
  return out;
}

}  // namespace xenoscope::report
