#include "report/timeline/series_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_text.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using analysis::IntervalRow;
using analysis::Quantity;
using analysis::SeriesTotals;
using analysis::TotalledSeries;

// Returns the name of a column. It is the line's name when there is one series; otherwise it has
// the series' name too: "exits:VMEXIT_CPUID".
std::string ColumnName(const SeriesTotals& totals, const TotalledSeries& series, size_t line) {
  const std::string& name = series.lines[line].name;
  return totals.series.size() == 1 ? name : fmt::format("{}:{}", series.info->name, name);
}

class WithTotals : public SeriesRows {
 public:
  explicit WithTotals(const SeriesTotals& totals) : totals_(totals) {}

 protected:
  double Seconds(Tsc at) const { return clock().Seconds(at - totals_.metadata.range.begin); }
  const Clock& clock() const { return totals_.metadata.clock; }

  const SeriesTotals& totals_;
};

class Csv : public WithTotals {
 public:
  using WithTotals::WithTotals;
  void Begin(std::string& out) override {
    out += "begin_s";
    for (const TotalledSeries& series : totals_.series) {
      for (size_t i = 0; i < series.lines.size(); ++i) out += "," + ColumnName(totals_, series, i);
    }
    out += "\r\n";
  }
  void Row(const IntervalRow& row, std::string& out) override {
    fmt::format_to(std::back_inserter(out), "{:.9f}", Seconds(row.range.begin));
    for (size_t s = 0; s < row.values.size(); ++s) {
      const bool time = totals_.series[s].info->quantity == Quantity::kTime;
      for (const uint64_t value : row.values[s]) {
        if (time) {
          fmt::format_to(std::back_inserter(out), ",{:.9f}", clock().Seconds(value));
        } else {
          fmt::format_to(std::back_inserter(out), ",{}", value);
        }
      }
    }
    out += "\r\n";
  }
  void End(std::string& /*out*/) override {}
};

class Json : public WithTotals {
 public:
  using WithTotals::WithTotals;
  void Begin(std::string& out) override {
    using nlohmann::ordered_json;
    ordered_json series = ordered_json::array();
    for (const TotalledSeries& one : totals_.series) {
      ordered_json lines = ordered_json::array();
      for (const auto& line : one.lines)
        lines.push_back({{"name", line.name}, {"total", line.total}});
      series.push_back({{"name", one.info->name},
                        {"unit", one.info->quantity == Quantity::kTime ? "cycles" : "count"},
                        {"lines", std::move(lines)}});
    }
    const ordered_json trace = {{"first_tsc", totals_.metadata.range.begin.value},
                                {"last_tsc", totals_.metadata.range.end.value},
                                {"cpu_hz", clock().hz},
                                {"cpu_hz_source", ToString(clock().source)}};
    fmt::format_to(
        std::back_inserter(out),
        "{{\n\"trace\": {},\n\"interval_cycles\": {},\n\"series\": {},\n\"intervals\": [",
        JsonText(trace), totals_.length, JsonText(series));
  }
  // Writes the half-open range [begin_tsc, end_tsc), then the values of each series in the order of
  // its lines.
  void Row(const IntervalRow& row, std::string& out) override {
    nlohmann::ordered_json object = {{"begin_tsc", row.range.begin.value},
                                     {"end_tsc", row.range.end.value}};
    for (size_t s = 0; s < row.values.size(); ++s) {
      object[std::string(totals_.series[s].info->name)] = row.values[s];
    }
    out += first_ ? "\n" : ",\n";
    first_ = false;
    out += JsonText(object);
  }
  void End(std::string& out) override { out += "\n]\n}\n"; }

 private:
  bool first_ = true;
};

class Text : public WithTotals {
 public:
  using WithTotals::WithTotals;
  void Begin(std::string& out) override {
    if (std::all_of(totals_.series.begin(), totals_.series.end(),
                    [](const TotalledSeries& series) { return series.lines.empty(); })) {
      out += "The trace has no such events.\n";
      return;
    }
    for (const TotalledSeries& series : totals_.series) {
      fmt::format_to(std::back_inserter(out), "{}, {} intervals of {}{}\n", series.info->title,
                     intervals(), CellText(clock().Seconds(totals_.length), ColumnUnit::kSeconds),
                     series.info->quantity == Quantity::kTime ? "; 100% is one pCPU or vCPU" : "");
    }
    fmt::format_to(std::back_inserter(out), "{:>12}", "from");
    for (const TotalledSeries& series : totals_.series) {
      for (size_t i = 0; i < series.lines.size(); ++i) {
        const std::string name = ColumnName(totals_, series, i);
        widths_.push_back(std::max(DisplayWidth(name), kNarrowest));
        fmt::format_to(std::back_inserter(out), "  {:>{}}", name, widths_.back());
      }
    }
    out += '\n';
  }
  void Row(const IntervalRow& row, std::string& out) override {
    if (widths_.empty()) return;
    fmt::format_to(std::back_inserter(out), "{:>10.6f} s", Seconds(row.range.begin));
    size_t column = 0;
    for (size_t s = 0; s < row.values.size(); ++s) {
      const bool time = totals_.series[s].info->quantity == Quantity::kTime;
      for (const uint64_t value : row.values[s]) {
        const double share = static_cast<double>(value) / static_cast<double>(row.range.Length());
        fmt::format_to(
            std::back_inserter(out), "  {:>{}}",
            time ? CellText(share, ColumnUnit::kShare) : CellText(value, ColumnUnit::kCount),
            widths_[column++]);
      }
    }
    out += '\n';
  }
  void End(std::string& out) override {
    if (widths_.empty()) return;
    out += "       total";
    size_t column = 0;
    for (const TotalledSeries& series : totals_.series) {
      const bool time = series.info->quantity == Quantity::kTime;
      for (const auto& line : series.lines) {
        fmt::format_to(std::back_inserter(out), "  {:>{}}",
                       time ? CellText(clock().Seconds(line.total), ColumnUnit::kSeconds)
                            : CellText(line.total, ColumnUnit::kCount),
                       widths_[column++]);
      }
    }
    out += '\n';
  }

 private:
  static constexpr size_t kNarrowest = 8;  // the width of "100.00%"
  uint64_t intervals() const { return totals_.metadata.range.Length() / totals_.length + 1; }

  std::vector<size_t> widths_;
};

}  // namespace

std::unique_ptr<SeriesRows> MakeSeriesRows(std::string_view format, const SeriesTotals& totals) {
  if (format == "csv") return std::make_unique<Csv>(totals);
  if (format == "json") return std::make_unique<Json>(totals);
  return std::make_unique<Text>(totals);
}

}  // namespace xenoscope::report
