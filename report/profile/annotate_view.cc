#include "report/profile/annotate_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "report/table/table.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

double Share(double samples, const AnnotatedFunction& function) {
  return function.samples > 0 ? samples / function.samples : 0;
}

// A line without samples has an empty cell.
Cell IfAny(double value) { return value > 0 ? Cell(value) : Cell(); }

std::vector<Column> ColumnsOf(const AnnotatedFunction& function) {
  std::vector<Column> columns = {{"share", "share", ColumnUnit::kShare},
                                 {"samples", "samples", ColumnUnit::kCount}};
  for (const std::string& exit : function.exits)
    columns.push_back({exit, exit, ColumnUnit::kCount});
  columns.push_back({"place", "line", ColumnUnit::kText, Shorten::kEnd});
  columns.push_back({"code", "code", ColumnUnit::kText, Shorten::kEnd});
  return columns;
}

std::vector<Cell> CellsOf(const CodeLine& line, const AnnotatedFunction& function) {
  std::vector<Cell> cells = {IfAny(Share(line.samples, function)), IfAny(line.samples)};
  for (size_t i = 0; i < function.exits.size(); ++i) {
    cells.push_back(i < line.by_exit.size() ? IfAny(line.by_exit[i]) : Cell());
  }
  cells.emplace_back(line.place);
  cells.emplace_back(line.code);
  return cells;
}

}  // namespace

std::string AnnotateText(const std::vector<AnnotatedFunction>& functions, const TextStyle& style) {
  std::string text;
  for (const AnnotatedFunction& function : functions) {
    if (!text.empty()) text += '\n';
    text +=
        fmt::format("{} in {}, {}: {} samples, {} of all samples\n", function.function,
                    function.image, function.domain, CellText(function.samples, ColumnUnit::kCount),
                    CellText(function.share, ColumnUnit::kShare));
    for (const CodeBlock& block : function.blocks) {
      text += fmt::format("\n{}\n", block.title);
      Table table;
      table.columns = ColumnsOf(function);
      for (const CodeLine& line : block.lines) {
        table.AddRow(CellsOf(line, function));
        for (const InlinedSamples& inlined : line.inlined) {
          CodeLine row;
          row.samples = inlined.samples;
          row.code = fmt::format("| in inlined {}", inlined.function);
          table.AddRow(CellsOf(row, function));
        }
      }
      text += ToText(table, style);
    }
    if (!function.cautions.empty()) text += '\n';
    for (const std::string& caution : function.cautions) text += fmt::format("{}\n", caution);
  }
  return text;
}

std::string AnnotateCsv(const std::vector<AnnotatedFunction>& functions) {
  Table table;
  table.columns = {{"domain", "domain"},
                   {"image", "image"},
                   {"function", "function"},
                   {"file", "file"},
                   {"place", "place"},
                   {"samples", "samples", ColumnUnit::kCount},
                   {"share", "share", ColumnUnit::kShare}};
  const bool split = !functions.empty() && !functions.front().exits.empty();
  if (split) table.columns.insert(table.columns.begin() + 5, {"exit", "exit"});
  table.columns.push_back({"code", "code"});
  for (const AnnotatedFunction& function : functions) {
    const auto add = [&](const CodeBlock& block, const CodeLine& line, const std::string& exit,
                         double samples) {
      std::vector<Cell> cells = {function.domain, function.image, function.function, block.title,
                                 line.place};
      if (split) cells.emplace_back(exit);
      cells.emplace_back(samples);
      cells.emplace_back(Share(samples, function));
      cells.emplace_back(line.code);
      table.AddRow(std::move(cells));
    };
    for (const CodeBlock& block : function.blocks) {
      for (const CodeLine& line : block.lines) {
        if (!split) add(block, line, "", line.samples);
        for (size_t i = 0; i < line.by_exit.size(); ++i) {
          if (line.by_exit[i] > 0) add(block, line, function.exits[i], line.by_exit[i]);
        }
      }
    }
  }
  return ToCsv(table);
}

nlohmann::ordered_json AnnotateJson(const std::vector<AnnotatedFunction>& functions) {
  auto all = nlohmann::ordered_json::array();
  for (const AnnotatedFunction& function : functions) {
    nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
    for (const CodeBlock& block : function.blocks) {
      nlohmann::ordered_json lines = nlohmann::ordered_json::array();
      for (const CodeLine& line : block.lines) {
        nlohmann::ordered_json entry = {{"place", line.place},
                                        {"samples", line.samples},
                                        {"share", Share(line.samples, function)},
                                        {"code", line.code}};
        for (size_t i = 0; i < line.by_exit.size(); ++i) {
          if (line.by_exit[i] > 0) entry["exits"][function.exits[i]] = line.by_exit[i];
        }
        for (const InlinedSamples& inlined : line.inlined) {
          entry["inlined"].push_back(
              {{"function", inlined.function}, {"samples", inlined.samples}});
        }
        lines.push_back(std::move(entry));
      }
      blocks.push_back({{"file", block.title}, {"lines", std::move(lines)}});
    }
    all.push_back({{"domain", function.domain},
                   {"image", function.image},
                   {"function", function.function},
                   {"samples", function.samples},
                   {"share", function.share},
                   {"blocks", std::move(blocks)},
                   {"cautions", function.cautions}});
  }
  return {{"functions", std::move(all)}};
}

}  // namespace xenoscope::report
