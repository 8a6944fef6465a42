// Annotated code as an HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/markup.h"
#include "report/profile/annotate_view.h"
#include "report/profile/column_help.h"
#include "report/table/table.h"

namespace xenoscope::report {
namespace {

constexpr std::string_view kBegin = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>xenoscope annotate</title>
<style>
body { font-family: sans-serif; margin: 1.5em; }
h2 { margin-bottom: 0.2em; }
table { border-collapse: collapse; font-family: monospace; }
th, td { padding: 0 0.6em; text-align: right; white-space: pre; }
th { text-align: right; border-bottom: 1px solid #999; }
th.code, td.code { text-align: left; }
tr.inlined td { color: #666; }
p { color: #444; max-width: 60em; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; }
  body { background: #15171a; color: #ececec; }
  p, tr.inlined td { color: #a5abb3; }
}
</style>
</head>
<body>
)";

std::string Figure(double value, ColumnUnit unit) {
  return value > 0 ? CellText(value, unit) : std::string();
}

void AddRow(const CodeLine& line, const AnnotatedFunction& function, bool inlined,
            std::string& page) {
  const double share = function.samples > 0 ? line.samples / function.samples : 0;
  // Lines with more samples are redder. A line with half of the function's samples has the full
  // colour.
  const double heat = inlined ? 0 : std::min(1.0, 2 * share);
  page += fmt::format(
      "<tr{}{}><td>{}</td><td>{}</td>", inlined ? " class=\"inlined\"" : "",
      heat > 0 ? fmt::format(" style=\"background: rgba(255, 80, 40, {:.3f})\"", 0.6 * heat) : "",
      Figure(share, ColumnUnit::kShare), Figure(line.samples, ColumnUnit::kCount));
  for (size_t i = 0; i < function.exits.size(); ++i) {
    page += fmt::format("<td>{}</td>", i < line.by_exit.size()
                                           ? Figure(line.by_exit[i], ColumnUnit::kCount)
                                           : std::string());
  }
  page += fmt::format("<td>{}</td><td class=\"code\">{}</td></tr>\n", Escaped(line.place),
                      Escaped(line.code));
}

void AddBlock(const CodeBlock& block, const AnnotatedFunction& function, std::string& page) {
  page += fmt::format("<h3>{}</h3>\n<table>\n<tr>", Escaped(block.title));
  const auto heading = [&page](std::string_view name, std::string_view key, const char* kind = "") {
    page += fmt::format("<th{} title=\"{}\">{}</th>", kind, Escaped(HelpOf("annotate", key)),
                        Escaped(name));
  };
  heading("share", "share");
  heading("samples", "samples");
  for (const std::string& exit : function.exits) heading(exit, "exit");
  heading("line", "line");
  heading("code", "code", " class=\"code\"");
  page += "</tr>\n";
  for (const CodeLine& line : block.lines) {
    AddRow(line, function, false, page);
    for (const InlinedSamples& inlined : line.inlined) {
      CodeLine row;
      row.samples = inlined.samples;
      row.code = fmt::format("    in inlined {}", inlined.function);
      AddRow(row, function, true, page);
    }
  }
  page += "</table>\n";
}

}  // namespace

std::string AnnotateHtml(const std::vector<AnnotatedFunction>& functions) {
  std::string page(kBegin);
  for (const AnnotatedFunction& function : functions) {
    page += fmt::format("<h2>{}</h2>\n<p>{}, {}: {} samples, {} of all samples</p>\n",
                        Escaped(function.function), Escaped(function.image),
                        Escaped(function.domain), CellText(function.samples, ColumnUnit::kCount),
                        CellText(function.share, ColumnUnit::kShare));
    for (const CodeBlock& block : function.blocks) AddBlock(block, function, page);
    for (const std::string& caution : function.cautions) {
      page += fmt::format("<p>{}</p>\n", Escaped(caution));
    }
  }
  page += "</body>\n</html>\n";
  return page;
}

}  // namespace xenoscope::report
