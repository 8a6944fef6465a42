#include "report/export/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/markup.h"

namespace xenoscope::report {

std::string ToFolded(const std::vector<FlameLine>& lines) {
  std::string out;
  for (const FlameLine& line : lines) {
    for (const FlameFrame& frame : line.frames) {
      std::string name = Printable(frame.name);
      std::ranges::replace(name, ';', ':');  // ';' separates frames
      if (&frame != line.frames.data()) out += ';';
      out += name;
    }
    fmt::format_to(std::back_inserter(out), " {}\n", line.weight);
  }
  return out;
}

}  // namespace xenoscope::report
