#include "report/html/page_code.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/html/packed.h"
#include "report/markup.h"

namespace xenoscope::report {
namespace {

using nlohmann::ordered_json;

// Returns which lines are kept.
std::vector<bool> Kept(const std::vector<CodeLine>& lines) {
  const bool all = lines.size() <= PageCode::kLongFunction;
  std::vector<bool> kept(lines.size(), all);
  if (all) return kept;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].samples <= 0) continue;
    const size_t first = i - std::min(i, PageCode::kNear);
    const size_t last = std::min(i + PageCode::kNear + 1, lines.size());
    std::fill(kept.begin() + static_cast<ptrdiff_t>(first),
              kept.begin() + static_cast<ptrdiff_t>(last), true);
  }
  return kept;
}

ordered_json LineJson(const CodeLine& line) {
  ordered_json by_exit = ordered_json::array();
  if (line.samples > 0) {
    for (const double samples : line.by_exit) by_exit.push_back(Rounded(samples));
  }
  return {Printable(line.place), Printable(line.code), Rounded(line.samples), std::move(by_exit)};
}

}  // namespace

void PageCode::Add(const std::string& domain, const AnnotatedFunction& function) {
  ordered_json lines = ordered_json::array();
  bool has_code = false;
  for (const CodeBlock& block : function.blocks) {
    const std::vector<bool> kept = Kept(block.lines);
    bool is_gap = false;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) {
        if (!std::exchange(is_gap, true)) lines.push_back({"", "…", 0, ordered_json::array()});
        continue;
      }
      is_gap = false;
      has_code = has_code || !block.lines[i].code.empty();
      bytes_ += block.lines[i].place.size() + block.lines[i].code.size();
      lines.push_back(LineJson(block.lines[i]));
    }
  }
  if (!has_code) return;
  ordered_json exits = ordered_json::array();
  for (const std::string& exit : function.exits) exits.push_back(Printable(exit));
  functions_.push_back({{"domain", domain},
                        {"image", Printable(function.image)},
                        {"function", Printable(function.function)},
                        {"samples", Rounded(function.samples)},
                        {"title", Printable(function.blocks.front().title)},
                        {"exits", std::move(exits)},
                        {"lines", std::move(lines)}});
}

}  // namespace xenoscope::report
