#include "report/timeline/series_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using analysis::IntervalRow;
using analysis::Quantity;
using analysis::SeriesSurvey;
using analysis::SurveyedSeries;

// Alone a line is called by its name, beside other series "exits:VMEXIT_CPUID".
std::string ColumnName(const SeriesSurvey& survey, const SurveyedSeries& series, size_t line) {
  const std::string& name = series.lines[line].name;
  return survey.series.size() == 1 ? name : fmt::format("{}:{}", series.info->name, name);
}

class WithSurvey : public SeriesRows {
 public:
  WithSurvey(const SeriesSurvey& survey, Cycles interval) : survey_(survey), interval_(interval) {}

 protected:
  double Seconds(Tsc at) const { return clock().Seconds(at - survey_.facts.range.begin); }
  const Clock& clock() const { return survey_.facts.clock; }

  const SeriesSurvey& survey_;
  Cycles interval_;
};

class Csv : public WithSurvey {
 public:
  using WithSurvey::WithSurvey;
  void Begin(std::string& out) override {
    out += "begin_s";
    for (const SurveyedSeries& series : survey_.series) {
      for (size_t i = 0; i < series.lines.size(); ++i) out += "," + ColumnName(survey_, series, i);
    }
    out += "\r\n";
  }
  void Row(const IntervalRow& row, std::string& out) override {
    fmt::format_to(std::back_inserter(out), "{:.9f}", Seconds(row.range.begin));
    for (size_t s = 0; s < row.values.size(); ++s) {
      const bool time = survey_.series[s].info->quantity == Quantity::kTime;
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

class Json : public WithSurvey {
 public:
  using WithSurvey::WithSurvey;
  void Begin(std::string& out) override {
    using nlohmann::ordered_json;
    ordered_json series = ordered_json::array();
    for (const SurveyedSeries& one : survey_.series) {
      ordered_json lines = ordered_json::array();
      for (const auto& line : one.lines)
        lines.push_back({{"name", line.name}, {"total", line.total}});
      series.push_back({{"name", one.info->name},
                        {"unit", one.info->quantity == Quantity::kTime ? "cycles" : "count"},
                        {"lines", std::move(lines)}});
    }
    const ordered_json trace = {{"first_tsc", survey_.facts.range.begin.value},
                                {"last_tsc", survey_.facts.range.end.value},
                                {"cpu_hz", clock().hz},
                                {"cpu_hz_source", ToString(clock().source)}};
    fmt::format_to(
        std::back_inserter(out),
        "{{\n\"trace\": {},\n\"interval_cycles\": {},\n\"series\": {},\n\"intervals\": [",
        trace.dump(), interval_, series.dump());
  }
  // [begin_tsc, end_tsc), and of each series the values in the order of its lines.
  void Row(const IntervalRow& row, std::string& out) override {
    nlohmann::ordered_json object = {{"begin_tsc", row.range.begin.value},
                                     {"end_tsc", row.range.end.value}};
    for (size_t s = 0; s < row.values.size(); ++s) {
      object[std::string(survey_.series[s].info->name)] = row.values[s];
    }
    out += first_ ? "\n" : ",\n";
    first_ = false;
    out += object.dump();
  }
  void End(std::string& out) override { out += "\n]\n}\n"; }

 private:
  bool first_ = true;
};

class Text : public WithSurvey {
 public:
  using WithSurvey::WithSurvey;
  void Begin(std::string& out) override {
    if (std::all_of(survey_.series.begin(), survey_.series.end(),
                    [](const SurveyedSeries& series) { return series.lines.empty(); })) {
      out += "Nothing of this in the trace.\n";
      return;
    }
    for (const SurveyedSeries& series : survey_.series) {
      fmt::format_to(std::back_inserter(out), "{}, {} intervals of {}{}\n", series.info->title,
                     intervals(), CellText(clock().Seconds(interval_), Unit::kSeconds),
                     series.info->quantity == Quantity::kTime ? "; 100% is one pCPU or vCPU" : "");
    }
    fmt::format_to(std::back_inserter(out), "{:>12}", "from");
    for (const SurveyedSeries& series : survey_.series) {
      for (size_t i = 0; i < series.lines.size(); ++i) {
        const std::string name = ColumnName(survey_, series, i);
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
      const bool time = survey_.series[s].info->quantity == Quantity::kTime;
      for (const uint64_t value : row.values[s]) {
        const double share = static_cast<double>(value) / static_cast<double>(row.range.Length());
        fmt::format_to(std::back_inserter(out), "  {:>{}}",
                       time ? CellText(share, Unit::kShare) : CellText(value, Unit::kCount),
                       widths_[column++]);
      }
    }
    out += '\n';
  }
  void End(std::string& out) override {
    if (widths_.empty()) return;
    out += "       total";
    size_t column = 0;
    for (const SurveyedSeries& series : survey_.series) {
      const bool time = series.info->quantity == Quantity::kTime;
      for (const auto& line : series.lines) {
        fmt::format_to(std::back_inserter(out), "  {:>{}}",
                       time ? CellText(clock().Seconds(line.total), Unit::kSeconds)
                            : CellText(line.total, Unit::kCount),
                       widths_[column++]);
      }
    }
    out += '\n';
  }

 private:
  static constexpr size_t kNarrowest = 8;  // "100.00%"
  uint64_t intervals() const { return survey_.facts.range.Length() / interval_ + 1; }

  std::vector<size_t> widths_;
};

}  // namespace

std::unique_ptr<SeriesRows> MakeSeriesRows(std::string_view format, const SeriesSurvey& survey,
                                           Cycles interval) {
  if (format == "csv") return std::make_unique<Csv>(survey, interval);
  if (format == "json") return std::make_unique<Json>(survey, interval);
  return std::make_unique<Text>(survey, interval);
}

}  // namespace xenoscope::report
