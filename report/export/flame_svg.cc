#include "report/export/flame_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "report/markup.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

// Sizes in pixels.
constexpr double kWidth = 1200;
constexpr double kMargin = 10;
constexpr double kTop = 62;
constexpr double kBottom = 34;
constexpr double kRow = 18;
constexpr double kLetter = 7.2;  // the width of a letter in the monospaced font of 12 pixels
constexpr double kNarrowest = 0.2;

struct Box {
  const FlameFrame* frame = nullptr;
  size_t depth = 0;
  int64_t begin = 0;  // the sum of the weights to the left
  int64_t weight = 0;
};

// Returns the boxes of all frames, outer ones first. O(lines * depth).
std::vector<Box> BoxesOf(const FlameGraph& graph) {
  static const FlameFrame kAll{"all", FrameKind::kGroup};
  std::vector<Box> boxes;
  std::vector<size_t> open;  // the indices of the open boxes, by depth
  int64_t at = 0;
  boxes.push_back({&kAll, 0, 0, 0});
  open.push_back(0);
  for (const FlameLine& line : graph.lines) {
    size_t same = 0;
    while (same < line.frames.size() && same + 1 < open.size() &&
           boxes[open[same + 1]].frame == &graph.frames[line.frames[same]]) {
      ++same;
    }
    open.resize(same + 1);
    for (size_t depth = same; depth < line.frames.size(); ++depth) {
      open.push_back(boxes.size());
      boxes.push_back({&graph.frames[line.frames[depth]], depth + 1, at, 0});
    }
    for (const size_t box : open) boxes[box].weight += line.weight;
    at += line.weight;
  }
  return boxes;
}

const char* ClassOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kUser:
      return "u";
    case FrameKind::kKernel:
      return "k";
    case FrameKind::kXen:
      return "x";
    case FrameKind::kGroup:
      break;
  }
  return "g";
}

// The colours of Okabe and Ito, as in plot.h, but lighter, so that black text is legible on them.
constexpr std::string_view kStyle = R"(<style>
svg{font:12px ui-monospace,DejaVu Sans Mono,monospace;background:#fff}
text{fill:#111}.head{font-size:17px;font-weight:600}.small{fill:#555}.button{cursor:pointer}
rect{stroke:#fff;stroke-width:.4}.g rect{fill:#d5d5d5}.u rect{fill:#7cc4ec}.k rect{fill:#f2bf4d}
.x rect{fill:#e8895a}.box{cursor:pointer}.box text{pointer-events:none}
.box:hover rect,.box:focus rect{stroke:#000;stroke-width:1.2}.box:focus{outline:none}
.found rect{fill:#c9a3f0}.faint{opacity:.55}
@media(prefers-color-scheme:dark){svg{background:#1b1b1b}rect{stroke:#1b1b1b}
.head,.small,.button{fill:#ddd}.box:hover rect,.box:focus rect{stroke:#fff}}
</style>
)";

// Each box has three values in data-w: its begin and its width as shares of the whole, and its
// depth.
constexpr std::string_view kScript = R"(<script><![CDATA[
(function () {
  var svg = document.documentElement, boxes = [], names = [], W = +svg.dataset.width, M = 10, L = 7.2;
  svg.querySelectorAll('.box').forEach(function (g) {
    var d = g.dataset.w.split(' ').map(Number);
    boxes.push({g: g, b: d[0], w: d[1], d: d[2], r: g.querySelector('rect'),
                t: g.querySelector('text'), s: g.querySelector('title').textContent});
    names.push(g.dataset.n);
  });
  var root = boxes[0];
  function fit(box, i, width) {
    if (!box.t) {
      box.t = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      box.t.setAttribute('y', +box.r.getAttribute('y') + 13);
      box.g.appendChild(box.t);
    }
    var room = Math.floor((width - 6) / L), name = names[i];
    box.t.textContent = room < 3 ? '' : name.length <= room ? name : name.slice(0, room - 2) + '..';
  }
  function show(to) {
    root = to;
    boxes.forEach(function (box, i) {
      var above = box.d < to.d && box.b <= to.b && box.b + box.w >= to.b + to.w;
      var inside = box.d >= to.d && box.b >= to.b && box.b + box.w <= to.b + to.w;
      box.g.style.display = above || inside ? '' : 'none';
      box.g.classList.toggle('faint', above);
      if (!above && !inside) return;
      var x = above ? M : M + (box.b - to.b) / to.w * W, width = above ? W : box.w / to.w * W;
      box.r.setAttribute('x', x);
      box.r.setAttribute('width', Math.max(width, .1));
      fit(box, i, width);
      box.t.setAttribute('x', x + 3);
    });
    document.getElementById('reset').style.display = to === boxes[0] ? 'none' : '';
  }
  function search(words) {
    var test = null, marked = [];
    if (words) {
      try { test = new RegExp(words, 'i'); } catch (e) { words = words.toLowerCase(); }
    }
    boxes.forEach(function (box, i) {
      var hit = !!words && (test ? test.test(names[i]) : names[i].toLowerCase().indexOf(words) >= 0);
      box.g.classList.toggle('found', hit);
      if (hit) marked.push(box);
    });
    marked.sort(function (a, b) { return a.b - b.b || b.w - a.w; });
    var end = -1, sum = 0;
    marked.forEach(function (box) {
      if (box.b + 1e-12 >= end) { sum += box.w; end = box.b + box.w; }
    });
    document.getElementById('matched').textContent =
      words ? 'matched: ' + (sum / boxes[0].w * 100).toFixed(2) + '%' : '';
  }
  function ask() { var words = prompt('Search (a regular expression):', ''); if (words !== null) search(words); }
  boxes.forEach(function (box) {
    box.g.addEventListener('click', function () { show(box); });
    box.g.addEventListener('mouseover', function () { document.getElementById('about').textContent = box.s; });
    box.g.addEventListener('keydown', function (e) { if (e.key === 'Enter') show(box); });
  });
  document.getElementById('reset').addEventListener('click', function () { show(boxes[0]); });
  document.getElementById('search').addEventListener('click', ask);
  document.addEventListener('keydown', function (e) {
    if (e.key === 'Escape') { show(boxes[0]); search(''); }
    if (e.key === '/' || (e.ctrlKey && e.key === 'f')) { e.preventDefault(); ask(); }
  });
  window.xenoscope = {search: search, show: function (i) { show(boxes[i]); }};
  show(boxes[0]);
})();
]]></script>
)";

}  // namespace

std::string ToFlameSvg(const FlameGraph& graph, FlameWeight weight, std::string_view title) {
  const std::vector<Box> boxes = BoxesOf(graph);
  const auto all = static_cast<double>(std::max<int64_t>(boxes.front().weight, 1));
  constexpr double kGraph = kWidth - 2 * kMargin;
  size_t deepest = 0;
  const auto is_drawn = [&](const Box& box) {
    return box.depth == 0 || static_cast<double>(box.weight) / all * kGraph >= kNarrowest;
  };
  for (const Box& box : boxes) {
    if (is_drawn(box)) deepest = std::max(deepest, box.depth);
  }
  const double height = kTop + kRow * static_cast<double>(deepest + 1) + kBottom;
  std::string out;
  const auto put = [&out]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" data-width=\"{2}\">\n<title>{3}</title>\n",
      kWidth, height, kGraph, Escaped(title));
  out += kStyle;
  put("<text class=\"head\" x=\"{0}\" y=\"26\">{1}</text>\n"
      "<text class=\"small\" x=\"{0}\" y=\"46\">{2} {3}; width: {3}; grey: domains and groups, "
      "blue: user, yellow: kernel, red: Xen</text>\n"
      "<text class=\"button\" id=\"reset\" x=\"{4}\" y=\"26\" style=\"display:none\">"
      "[whole: Esc]</text>\n"
      "<text class=\"button\" id=\"search\" x=\"{5}\" y=\"26\">[search: /]</text>\n"
      "<text class=\"small\" id=\"matched\" x=\"{5}\" y=\"46\"></text>\n"
      "<text class=\"small\" id=\"about\" x=\"{0}\" y=\"{6}\"></text>\n",
      kMargin, Escaped(title),
      CellText(static_cast<double>(boxes.front().weight), ColumnUnit::kCycles), ToString(weight),
      kWidth - 250, kWidth - 130, height - 12);
  for (const Box& box : boxes) {
    if (!is_drawn(box)) continue;
    const double begin = static_cast<double>(box.begin) / all;
    const double share = static_cast<double>(box.weight) / all;
    const double y = kTop + kRow * static_cast<double>(deepest - box.depth);
    const std::string name = Printable(box.frame->name);
    put("<g class=\"box {}\" tabindex=\"0\" data-w=\"{:.8f} {:.8f} {}\" data-n=\"{}\">"
        "<title>{}: {} {} ({:.2f}%)</title>"
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>",
        ClassOf(box.frame->kind), begin, share, box.depth, Escaped(name), Escaped(name), box.weight,
        ToString(weight), share * 100, kMargin + begin * kGraph, y, share * kGraph, kRow - 1);
    const auto room = static_cast<size_t>(std::max(0.0, (share * kGraph - 6) / kLetter));
    if (room >= 3) {
      const bool fits = DisplayWidth(name) <= room;
      put("<text x=\"{:.2f}\" y=\"{}\">{}</text>", kMargin + begin * kGraph + 3, y + 13,
          Escaped(fits ? name : Shortened(name, room, Shorten::kEnd)));
    }
    out += "</g>\n";
  }
  out += kScript;
  out += "</svg>\n";
  return out;
}

}  // namespace xenoscope::report
