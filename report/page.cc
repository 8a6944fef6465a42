#include "report/page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text_numbers.h"
#include "report/column_words.h"
#include "report/markup.h"
#include "report/table_json.h"
#include "report/web_page.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using nlohmann::ordered_json;

constexpr std::string_view kPlace = "@@XENOSCOPE_DATA@@";

// JSON inside an element: no text in it can end the element or begin another.
std::string ForElement(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

absl::StatusOr<std::string> ToPage(const ordered_json& data) {
  const std::string_view page = WebPage();
  const size_t at = page.find(kPlace);
  if (at == std::string_view::npos) {
    return UnimplementedError(
        "this xenoscope was built without npm, and so without its page: "
        "--format svg draws a flame graph");
  }
  const std::string json =
      data.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
  return std::string(page.substr(0, at)) + ForElement(json) +
         std::string(page.substr(at + kPlace.size()));
}

ordered_json PageHead(const std::string& title, const std::vector<Dimension>& by) {
  ordered_json columns = ordered_json::array();
  for (const Dimension dimension : by) columns.push_back(ToString(dimension));
  ordered_json words = ordered_json::object();
  for (const ColumnWords& column : AllColumnWords()) words[column.key] = column.about;
  return {{"title", title}, {"by", std::move(columns)}, {"words", words}};
}

ordered_json PageDomains(const ProfileReport& report, const correlate::ProfileResult& flame) {
  std::map<DomainId, std::map<std::string, double>> modes;
  const double whole = report.is_time ? flame.cycles : flame.samples;
  for (const ProfileRow& row : flame.rows) {
    const double part = report.is_time ? row.cycles : row.samples;
    modes[row.domain][ToString(row.mode)] += whole > 0 ? part / whole : 0;
  }
  ordered_json out = ordered_json::array();
  for (const ProfileRow& row : report.result.domains) {
    out.push_back({{"name", DomainLabel(row.domain, report.domain_name(row.domain))},
                   {"domid", row.domain.value},
                   {"samples", row.samples},
                   {"share", row.share},
                   {"low", row.interval.low},
                   {"high", row.interval.high},
                   {"cycles", row.cycles},
                   {"modes", modes[row.domain]}});
  }
  return out;
}

std::vector<Dimension> PageColumns() {
  return {Dimension::kDomain, Dimension::kVcpu,  Dimension::kMode,
          Dimension::kExit,   Dimension::kImage, Dimension::kStack};
}

ordered_json PageFlame(const ProfileReport& report, const correlate::ProfileResult& flame,
                       size_t most) {
  TextNumbers texts;
  ordered_json columns = ordered_json::array();
  for (const Dimension dimension : PageColumns()) columns.push_back(ToString(dimension));

  // Stacks by the names of their functions: those of one name are one.
  std::map<std::vector<uint64_t>, size_t> stack_index;
  std::vector<size_t> stack_of;
  for (const correlate::Stack& stack : flame.stacks) {
    std::vector<uint64_t> names;
    const correlate::Stack outermost_first(stack.rbegin(), stack.rend());
    for (const correlate::StackFrame& frame : outermost_first) {
      names.push_back(texts.Of(Printable(report.function_of(frame.function).name)));
      names.push_back(static_cast<uint64_t>(frame.mode));
    }
    stack_of.push_back(stack_index.try_emplace(std::move(names), stack_index.size()).first->second);
  }
  const uint64_t rest = texts.Of("[others, each of a smaller share]");

  std::vector<const ProfileRow*> rows;
  for (const ProfileRow& row : flame.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const ProfileRow* row) { return row->share; });
  struct Sums {
    double samples = 0;
    double cycles = 0;
    double variance = 0;
  };
  std::map<std::vector<uint64_t>, Sums> sums;
  for (size_t i = 0; i < rows.size(); ++i) {
    const ProfileRow& row = *rows[i];
    std::vector<uint64_t> key;
    for (const Dimension dimension : PageColumns()) {
      if (dimension == Dimension::kStack) {
        key.push_back(
            i < most ? stack_of.at(row.stack)
                     : stack_index
                           .try_emplace({rest, static_cast<uint64_t>(row.mode)}, stack_index.size())
                           .first->second);
      } else if (i >= most && dimension == Dimension::kImage) {
        key.push_back(rest);
      } else {
        key.push_back(texts.Of(Printable(DimensionText(report, row, dimension))));
      }
    }
    Sums& sum = sums[std::move(key)];
    sum.samples += row.samples;
    sum.cycles += row.cycles;
    sum.variance += row.variance;
  }
  ordered_json out_rows = ordered_json::array();
  for (const auto& [key, sum] : sums) {
    ordered_json row = ordered_json::array();
    for (const uint64_t number : key) row.push_back(number);
    row.push_back(Rounded(sum.samples));
    row.push_back(std::llround(sum.cycles));
    row.push_back(sum.variance);
    out_rows.push_back(std::move(row));
  }
  std::vector<const std::vector<uint64_t>*> stacks(stack_index.size());
  for (const auto& [names, number] : stack_index) stacks[number] = &names;
  ordered_json out_stacks = ordered_json::array();
  for (const auto* names : stacks) out_stacks.push_back(*names);
  return {{"columns", std::move(columns)},
          {"strings", texts.all()},
          {"stacks", std::move(out_stacks)},
          {"rows", std::move(out_rows)}};
}

}  // namespace xenoscope::report
