#include "report/findings/findings_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/figure_text.h"
#include "report/markup.h"

namespace xenoscope::report {
namespace {

using findings::Finding;
using nlohmann::ordered_json;

constexpr size_t kFirst = 3;       // findings above a report
constexpr size_t kTimeWidth = 10;  // columns of "123.456 ms"
constexpr std::string_view kNoTime = "-";

double Seconds(const FindingsContext& context, double cycles) {
  return context.clock.hz == 0 ? 0 : cycles / static_cast<double>(context.clock.hz);
}

std::string TimeText(const FindingsContext& context, double cycles) {
  return cycles == 0 ? std::string(kNoTime) : SecondsText(Seconds(context, cycles));
}

// Returns the word as a shell takes it.
std::string Quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string CommandText(const Finding& finding, const FindingsContext& context) {
  std::string text = "xenoscope";
  for (const std::string& word : finding.command) text += " " + Quoted(word);
  return text + " " + Quoted(context.input);
}

// Returns the text in lines of at most `width` columns (0: one line); those after the first one
// begin with `indent` spaces, and the first one begins behind as many columns.
std::string Wrapped(const std::string& text, size_t indent, size_t width) {
  if (width == 0) return text;
  std::string out;
  size_t column = indent;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  for (const std::string& word : words) {
    const size_t length = DisplayWidth(word);
    if (column > indent && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += length;
  }
  return out;
}

// Returns a finding's time and sentence.
std::string Line(const Finding& finding, const FindingsContext& context, const TextStyle& style) {
  return fmt::format("{:>{}}  {}\n", TimeText(context, finding.cycles), kTimeWidth,
                     Wrapped(Printable(finding.text), kTimeWidth + 2, style.width));
}

std::string Paragraph(const Finding& finding, const FindingsContext& context,
                      const TextStyle& style) {
  constexpr size_t kIndent = kTimeWidth + 2;
  const std::string margin(kIndent, ' ');
  std::string text = Line(finding, context, style);
  const auto add = [&](const std::string& sentence) {
    text += margin + Wrapped(sentence, kIndent, style.width) + "\n";
  };
  if (finding.interval) {
    add(fmt::format("95 % interval: {} to {}", TimeText(context, finding.interval->low),
                    TimeText(context, finding.interval->high)));
  }
  if (!finding.advice.empty()) add(finding.advice);
  text += margin + Printable(CommandText(finding, context)) + "\n";
  return text;
}

ordered_json FiguresJson(const Finding& finding) {
  ordered_json figures = ordered_json::object();
  for (const analysis::Metric& figure : finding.figures) {
    figures[figure.key] =
        std::visit([](const auto& value) { return ordered_json(value); }, figure.value);
  }
  return figures;
}

}  // namespace

std::string FindingsText(std::span<const Finding> findings, const FindingsContext& context,
                         const TextStyle& style) {
  if (findings.empty()) return "Nothing stands out.\n";
  std::string text = "Findings, by the time that they concern\n";
  for (const Finding& finding : findings) text += "\n" + Paragraph(finding, context, style);
  return text;
}

std::string FirstFindingsText(std::span<const Finding> findings, const FindingsContext& context,
                              const TextStyle& style) {
  if (findings.empty()) return "";
  const auto first = findings.first(std::min(findings.size(), kFirst));
  std::string text =
      "Findings, by the time that they concern (--findings: all, with causes and commands)\n";
  for (const Finding& finding : first) text += Line(finding, context, style);
  return text + "\n";
}

ordered_json FindingsJson(std::span<const Finding> findings, const FindingsContext& context) {
  ordered_json all = ordered_json::array();
  for (const Finding& finding : findings) {
    const auto seconds = [&context](double cycles) {
      return ordered_json(Seconds(context, cycles));
    };
    all.push_back({{"rule", finding.rule},
                   {"domid", finding.domain ? ordered_json(finding.domain->value) : ordered_json()},
                   {"text", finding.text},
                   {"advice", finding.advice},
                   {"seconds", finding.cycles > 0 ? seconds(finding.cycles) : ordered_json()},
                   {"low", finding.interval ? seconds(finding.interval->low) : ordered_json()},
                   {"high", finding.interval ? seconds(finding.interval->high) : ordered_json()},
                   {"figures", FiguresJson(finding)},
                   {"command", CommandText(finding, context)}});
  }
  return all;
}

}  // namespace xenoscope::report
