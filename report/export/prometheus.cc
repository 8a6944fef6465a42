#include "report/export/prometheus.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/markup.h"

namespace xenoscope::report {
namespace {

// A label's value between quotes.
void AppendEscaped(std::string_view value, std::string& text) {
  for (const char c : Printable(value)) {  // without newlines
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
}

// As Go's ParseFloat reads it.
std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void PrometheusText::Begin(std::string_view metric, std::string_view help) {
  metric_ = metric;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} gauge\n", metric, help,
                 metric);
}

void PrometheusText::Add(std::span<const MetricLabel> labels, double value) {
  text_ += metric_;
  char before = '{';
  for (const auto& [name, words] : labels) {
    text_ += before;
    text_ += name;
    text_ += "=\"";
    AppendEscaped(words, text_);
    text_ += '"';
    before = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += ' ';
  text_ += NumberText(value);
  text_ += '\n';
}

}  // namespace xenoscope::report
